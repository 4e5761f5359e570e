"""Training methods that a configuration can switch on, one per module."""
