"""What answered numbers on a split are worth; each item counts once, on however many ranks."""

import math
from collections.abc import Mapping

import torch

from trainers.distributed import Ranks
from trainers.reporting import JsonValue

__all__ = ["RegressionMeter"]

_CONSTANT = 1e-12
"""Targets whose variance is a smaller share of their mean square than rounding leaves are taken as equal."""


class RegressionMeter:
    """Adds up the answers of one rank; `total` adds the ranks in one collective.

    Args:
        device: where answers are.
        scale: what one unit of answers and targets is in the units that errors are told in.
    """

    def __init__(self, device: torch.device, scale: float = 1.0) -> None:
        self._scale = scale
        # items, squared errors, absolute errors, targets, squared targets
        self._sums = torch.zeros(5, dtype=torch.float64, device=device)

    def add(self, answers: torch.Tensor, targets_N: torch.Tensor) -> None:
        """Count the answers, (N,) or (N, 1), to N items; nothing leaves the device."""
        targets_N = targets_N.to(torch.float64)
        errors_N = answers.to(torch.float64).reshape(targets_N.shape) - targets_N
        parts = (torch.ones_like(errors_N), errors_N.square(), errors_N.abs(), targets_N, targets_N.square())
        self._sums += torch.stack(parts).sum(dim=1)

    def total(self, ranks: Ranks) -> dict[str, float]:
        """Return the metrics of all ranks' items together; a collective, called by every rank.

        `r2`: share of the targets' variance that is explained, left out where all targets are equal; `rmse` and `mae`:
        in the scaled units; `loss`: mean squared error, in the units of the answers.

        Raises:
            ValueError: no rank counted an item.
        """
        items, squared, absolute, targets, square_targets = ranks.sum_(self._sums.clone()).cpu().tolist()
        if items == 0.0:
            raise ValueError("metrics need at least one item")
        variation = square_targets - targets**2 / items
        metrics = {
            "rmse": math.sqrt(squared / items) * self._scale,
            "mae": absolute / items * self._scale,
            "loss": squared / items,
        }
        if variation > _CONSTANT * square_targets:
            metrics["r2"] = 1.0 - squared / variation
        return metrics

    def details(self) -> Mapping[str, JsonValue]:
        """Return nothing: there is no more to tell than the metrics."""
        return {}
