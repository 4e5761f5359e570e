"""Targets as shares of the classes, and what an item counts by its class."""

import torch
from torch.nn import functional

__all__ = ["shares_of", "smoothed", "weights_of_items"]


def shares_of(targets: torch.Tensor, num_classes: int) -> torch.Tensor:
    """Return (N, K) float32 shares of targets that are (N,) int64 classes or shares already."""
    return functional.one_hot(targets, num_classes).float() if targets.dim() == 1 else targets.float()


def smoothed(shares_NK: torch.Tensor, label_smoothing: float) -> torch.Tensor:
    """Spread a part of each item's shares evenly over all classes.

    Source: Szegedy et al. 2016, arXiv 1512.00567, section 7.
    """
    return shares_NK * (1.0 - label_smoothing) + label_smoothing / shares_NK.shape[1]


def weights_of_items(shares_NK: torch.Tensor, weight_K: torch.Tensor | None) -> torch.Tensor | float:
    """Return the weight of each item: the mean of its classes' weights, by their shares."""
    return 1.0 if weight_K is None else shares_NK @ weight_K
