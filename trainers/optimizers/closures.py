"""The closure that torch's optimizers may be given: it computes the loss anew before weights move."""

from collections.abc import Callable

import torch

__all__ = ["loss_of"]


def loss_of(closure: Callable[[], float] | None) -> float | None:
    """Return what a closure returns, called with gradients; None: there is none."""
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()
