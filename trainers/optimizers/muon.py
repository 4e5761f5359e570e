"""Muon: the momentum of each hidden matrix is made orthogonal before it moves the weights."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.optim.adamw import adamw as adamw_step

from trainers.config import TrainConfig
from trainers.optimizers.closures import loss_of
from trainers.optimizers.groups import parameter_groups
from trainers.optimizers.hidden_matrices import hidden_matrices
from trainers.optimizers.sharded import shard_like, whole

__all__ = ["Muon", "muon", "orthogonal_direction"]

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
"""Of the iteration that raises all singular values to about 1 (Jordan et al. 2024, "Newton-Schulz")."""
RMS_OF_ADAMW = 0.2
"""Root mean square of AdamW's usual step, in learning rates (Liu et al. 2025, section 2.2, equation 4)."""


def muon(network: nn.Module, training: TrainConfig) -> torch.optim.Optimizer:
    """Return Muon over a network: `hidden_matrices` are made orthogonal, all other weights move by AdamW."""
    hidden = {id(weight) for weight in hidden_matrices(network)}
    groups = []
    for group in parameter_groups(network, training.weight_decay):
        for is_orthogonal in (True, False):
            chosen = [weight for weight in group["params"] if (id(weight) in hidden) == is_orthogonal]
            if chosen:
                groups.append({**group, "params": chosen, "is_orthogonal": is_orthogonal})
    return Muon(groups, lr=training.learning_rate, momentum=training.momentum)


class Muon(torch.optim.Optimizer):
    """Muon for matrices and AdamW for the rest, with one learning rate and one decoupled decay for both.

    A matrix moves as far as AdamW would move it, by root mean square, so that learning rate and decay mean for both
    what they mean for AdamW.

    Args:
        params: groups of weights; `is_orthogonal` marks those of matrices, and of kernels (outputs, inputs, ..).
        lr: the learning rate.
        weight_decay: share of a weight that a step takes off, times `lr`.
        momentum: of matrices, with Nesterov's look ahead; in [0, 1).

    Source: Jordan et al. 2024, Muon: An optimizer for hidden layers in neural networks,
        https://kellerjordan.github.io/posts/muon; length of the step and decay: Liu et al. 2025, Muon is Scalable for
        LLM Training, arXiv 2502.16982. torch.optim.Muon takes matrices only, and rounds to bfloat16 on CPUs, too.
    """

    def __init__(self, params: Any, lr: float, weight_decay: float = 0.0, momentum: float = 0.95) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "betas": (0.9, 0.999),
                "eps": 1e-8,
                "is_orthogonal": False,
                "fused": True,  # AdamW's step is; also tells load_state_dict where its counts of steps belong
            },
        )

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]  # overloaded
        """Move the weights that have a gradient, and return what the closure returns."""
        loss = loss_of(closure)
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            if group["is_orthogonal"]:
                for weight in weights:
                    self._move_matrix(weight, group)
            elif weights:
                self._move_rest(weights, group)
        return loss

    def _move_matrix(self, weight: torch.Tensor, group: dict[str, Any]) -> None:
        gradient, state, momentum = weight.grad, self.state[weight], group["momentum"]
        assert gradient is not None
        if not state:
            state["momentum"] = torch.zeros_like(weight, memory_format=torch.preserve_format)
        gathered = state["momentum"].lerp_(gradient, 1.0 - momentum)
        ahead = whole(gradient.lerp(gathered, momentum))
        # a kernel (M, I, h, w) as the matrix (M, I h w)
        direction_MN = orthogonal_direction(ahead.flatten(1)).to(weight.dtype)
        length = group["lr"] * RMS_OF_ADAMW * max(direction_MN.shape) ** 0.5
        weight.mul_(1.0 - group["lr"] * group["weight_decay"])
        weight.add_(shard_like(direction_MN.reshape(weight.shape), weight), alpha=-length)

    def _move_rest(self, weights: list[torch.Tensor], group: dict[str, Any]) -> None:
        states = [self._adamw_state(weight) for weight in weights]
        beta_1, beta_2 = group["betas"]
        adamw_step(
            weights,
            [weight.grad for weight in weights if weight.grad is not None],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            fused=group["fused"],
            amsgrad=False,
            beta1=beta_1,
            beta2=beta_2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=False,
        )

    def _adamw_state(self, weight: torch.Tensor) -> dict[str, torch.Tensor]:
        state: dict[str, torch.Tensor] = self.state[weight]
        if not state:
            state["step"] = torch.zeros((), device=weight.device)
            state["exp_avg"] = torch.zeros_like(weight, memory_format=torch.preserve_format)
            state["exp_avg_sq"] = torch.zeros_like(weight, memory_format=torch.preserve_format)
        return state


def orthogonal_direction(matrix_MN: torch.Tensor) -> torch.Tensor:
    """Return about U V^T of a matrix U S V^T: its singular values become 0.7 to 1.2, as fast as can be.

    Singular values far below the largest one stay behind, and a matrix of zeros stays what it is.

    Args:
        matrix_MN: (M, N) of any floating type.

    Returns:
        (M, N), float32 on a CPU; elsewhere bfloat16, which is enough for a direction (Jordan et al. 2024) and quick.
    """
    is_tall = matrix_MN.shape[0] > matrix_MN.shape[1]
    x = (matrix_MN.T if is_tall else matrix_MN).float()  # lying, its product with itself is the smaller one
    x = x / x.norm().clamp(min=1e-7)
    x = x if x.device.type == "cpu" else x.bfloat16()
    a, b, c = COEFFICIENTS
    for _ in range(ITERATIONS):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if is_tall else x
