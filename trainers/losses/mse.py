"""The squared error of numbers."""

import torch
from torch.nn import functional

__all__ = ["mse"]


def mse(answers: torch.Tensor, targets_N: torch.Tensor) -> torch.Tensor:
    """Return the squared error of each item, computed in float32.

    Args:
        answers: (N,) or (N, 1) of any floating type; N may be 0.
        targets_N: (N,) float32.

    Returns:
        (N,) float32.
    """
    return functional.mse_loss(answers.float().reshape(targets_N.shape), targets_N, reduction="none")
