"""Trains one configuration on any number of ranks: data, loop, checkpoints, resumption."""
