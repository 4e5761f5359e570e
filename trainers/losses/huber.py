"""Huber's error of numbers: squared where it is usual, absolute where it is not."""

import torch
from torch.nn import functional

__all__ = ["huber"]

DELTA = 1.345
"""Error from which on it is absolute: 95 % as efficient as squares where errors are normal with a standard deviation
of 1 (Holland and Welsch 1977, Robust regression using iteratively reweighted least-squares, table 1)."""


def huber(answers: torch.Tensor, targets_N: torch.Tensor) -> torch.Tensor:
    """Return the error e of each item: e^2 / 2 up to 1.345, 1.345 (|e| - 1.345 / 2) above.

    Args:
        answers: (N,) or (N, 1) of any floating type, in the unit of the targets; N may be 0.
        targets_N: (N,) float32, of a standard deviation near 1.

    Returns:
        (N,) float32.

    Source: Huber 1964, Robust Estimation of a Location Parameter, Annals of Mathematical Statistics 35(1).
    """
    answers_N = answers.float().reshape(targets_N.shape)
    return functional.huber_loss(answers_N, targets_N, reduction="none", delta=DELTA)
