"""Data sets as arrays: sources, splits, batches, augmentation."""
