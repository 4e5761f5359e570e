"""The cross entropy of classes, with smoothed labels."""

import torch
from torch.nn import functional

__all__ = ["cross_entropy"]

_NO_CLASS = -(2**62)
"""Torch leaves items of one class out in silence, -100 unless told otherwise; this one no item has."""


def cross_entropy(
    logits_NK: torch.Tensor,
    targets: torch.Tensor,
    *,
    label_smoothing: float = 0.0,
    weight_K: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the cross entropy of each item, computed in float32 whatever the logits are.

    Args:
        logits_NK: (N, K) unnormalised; N may be 0.
        targets: (N,) int64 in [0, K), or (N, K) float32 shares of the classes.
        label_smoothing: share of the target spread evenly over all K classes, in [0, 1).
        weight_K: factor of each class; None: 1.

    Returns:
        (N,) float32.

    Source: Szegedy et al. 2016, arXiv 1512.00567, section 7.
    """
    return functional.cross_entropy(
        logits_NK.float(),
        targets,
        weight=weight_K,
        ignore_index=_NO_CLASS,
        reduction="none",
        label_smoothing=label_smoothing,
    )
