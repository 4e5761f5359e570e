"""Lion: every weight moves by the same length, in the direction that gradient and momentum agree on."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from trainers.config import TrainConfig
from trainers.optimizers.closures import loss_of
from trainers.optimizers.groups import parameter_groups

__all__ = ["Lion", "lion", "lion_step"]

BETA_1, BETA_2 = 0.9, 0.99
"""How much of the direction is old momentum, and how much of the momentum stays (Chen et al. 2023)."""


def lion(network: nn.Module, training: TrainConfig) -> torch.optim.Optimizer:
    """Return Lion over a network.

    Its good learning rates are 3 to 10 times smaller than those of AdamW, its decays larger by the same factor (Chen
    et al. 2023, section 5).
    """
    return Lion(parameter_groups(network, training.weight_decay), lr=training.learning_rate)


class Lion(torch.optim.Optimizer):
    """Evolved sign momentum.

    Args:
        params: weights, or groups of them with their own `lr` and `weight_decay`.
        lr: what every weight moves by in a step.
        weight_decay: share of a weight that a step takes off, times `lr`.

    Source: Chen et al. 2023, Symbolic Discovery of Optimization Algorithms, arXiv 2302.06675, algorithm 2.
    """

    def __init__(self, params: Any, lr: float, weight_decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]  # overloaded
        """Move the weights that have a gradient, and return what the closure returns."""
        loss = loss_of(closure)
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            if weights:
                lion_step(
                    weights,
                    [weight.grad for weight in weights],
                    [self._momentum(weight) for weight in weights],
                    learning_rate=group["lr"],
                    weight_decay=group["weight_decay"],
                )
        return loss

    def _momentum(self, weight: torch.Tensor) -> torch.Tensor:
        state = self.state[weight]
        if not state:
            state["momentum"] = torch.zeros_like(weight, memory_format=torch.preserve_format)
        momentum: torch.Tensor = state["momentum"]
        return momentum


def lion_step(
    weights: list[torch.Tensor],
    gradients: list[torch.Tensor],
    momenta: list[torch.Tensor],
    *,
    learning_rate: float,
    weight_decay: float,
) -> None:
    """Move weights and momenta in place by one step; a weight where both are 0 only decays.

    Source: Chen et al. 2023, algorithm 2; one call for all weights, whatever device or ranks they are on.
    """
    directions = torch._foreach_lerp(momenta, gradients, 1.0 - BETA_1)
    torch._foreach_sign_(directions)
    torch._foreach_mul_(weights, 1.0 - learning_rate * weight_decay)
    torch._foreach_add_(weights, directions, alpha=-learning_rate)
    torch._foreach_lerp_(momenta, gradients, 1.0 - BETA_2)
