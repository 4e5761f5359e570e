"""L1: pulls weights to 0 by the same step whatever their size, so that needless ones become 0 nearly.

Source: Tibshirani 1996, Regression Shrinkage and Selection via the Lasso, for networks trained by gradients
Goodfellow et al. 2016, Deep Learning, section 7.1.2, equation 7.20.
"""

from collections.abc import Sequence

import torch
from torch import nn

from trainers.methods.method import Method
from trainers.optimizers.groups import decaying_weights

__all__ = ["L1Penalty", "add_l1_gradient"]


class L1Penalty(Method):
    """Adds the gradient of `factor` times the sum of the absolute weights; the training loss does not show it.

    Args:
        factor: above 0.
    """

    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._weights: list[nn.Parameter] | None = None

    @torch.no_grad()
    def before_step(self, network: nn.Module) -> None:
        """Pull the weights that decay: once for the whole batch, and before gradients are clipped."""
        if self._weights is None:
            self._weights = decaying_weights(network)
        add_l1_gradient(self._weights, self._factor)


def add_l1_gradient(weights: Sequence[torch.Tensor], factor: float) -> None:
    """Add `factor * sign(weight)` to the gradients that are there, in place; the sign of 0 is 0."""
    moved = [weight for weight in weights if weight.grad is not None]
    if moved:
        gradients = [weight.grad for weight in moved if weight.grad is not None]
        torch._foreach_add_(gradients, torch._foreach_sign(moved), alpha=factor)
