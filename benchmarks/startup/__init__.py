"""The sides and parts of `trial_startup`."""
