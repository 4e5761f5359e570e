"""The absolute error of numbers, rounded off at 0."""

import torch
from torch.nn import functional

__all__ = ["smooth_l1"]

BETA = 1.0
"""Error below which it is squared (Girshick 2015)."""


def smooth_l1(answers: torch.Tensor, targets_N: torch.Tensor) -> torch.Tensor:
    """Return the error of each item: squared and halved below 1, absolute less 0.5 above.

    Outliers pull with the same force however far they are.

    Args:
        answers: (N,) or (N, 1) of any floating type, in the unit of the targets; N may be 0.
        targets_N: (N,) float32, of a standard deviation near 1.

    Returns:
        (N,) float32.

    Source: Girshick 2015, Fast R-CNN, arXiv 1504.08083, equation 3.
    """
    answers_N = answers.float().reshape(targets_N.shape)
    return functional.smooth_l1_loss(answers_N, targets_N, reduction="none", beta=BETA)
