"""Trainings of a person's own: a file with `fit(context)`, a network with data and a loss, any script."""
