"""The focal loss: the cross entropy, with less weight for what is classified well already."""

import torch
from torch.nn import functional

from trainers.losses.shares import shares_of, smoothed

__all__ = ["focal"]


def focal(
    logits_NK: torch.Tensor,
    targets: torch.Tensor,
    *,
    gamma: float,
    label_smoothing: float = 0.0,
    weight_K: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the focal loss of each item, computed in float32 whatever the logits are.

    Args:
        logits_NK: (N, K) unnormalised; N may be 0.
        targets: (N,) int64 in [0, K), or (N, K) float32 shares of the classes.
        gamma: exponent of a class's missing probability, at least 0; 0: the cross entropy.
        label_smoothing: share of the target spread evenly over all K classes, in [0, 1).
        weight_K: factor of each class ("alpha"); None: 1.

    Returns:
        (N,) float32.

    Source: Lin et al. 2017, arXiv 1708.02002, equation 5, with the softmax over K classes for their sigmoid of two.
    """
    logarithms_NK = functional.log_softmax(logits_NK.float(), dim=1)
    shares_NK = smoothed(shares_of(targets, logits_NK.shape[1]), label_smoothing)
    # never quite 0, where a power below 1 has an infinite slope
    missing_NK = (-torch.expm1(logarithms_NK)).clamp(min=torch.finfo(torch.float32).tiny)
    losses_NK = -shares_NK * missing_NK**gamma * logarithms_NK
    return (losses_NK if weight_K is None else losses_NK * weight_K).sum(dim=1)
