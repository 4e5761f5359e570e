"""Takes over the state of an optimizer whose weights may be cut over the ranks."""

from collections.abc import Mapping
from typing import Any

import torch

from trainers.optimizers.sharded import is_sharded, shard_like

__all__ = ["load_optimizer_state"]


def load_optimizer_state(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Take over the state of an optimizer, each tensor cut over the ranks as its weight is.

    In which way steps are computed (`fused`, `foreach`) stays: not every way knows weights that are cut.
    """
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    groups = [
        {**theirs, **{name: ours[name] for name in ("fused", "foreach") if name in ours}}
        for ours, theirs in zip(optimizer.param_groups, state["param_groups"], strict=True)
    ]
    placed = {index: _cut_like(weights[index], values) for index, values in state["state"].items()}
    optimizer.load_state_dict({**state, "param_groups": groups, "state": placed})
    for weight, values in optimizer.state.items():
        values.update({name: _arranged_like(value, weight) for name, value in values.items()})


def _cut_like(weight: torch.Tensor, values: Mapping[str, Any]) -> dict[str, Any]:
    # A copy, because a part of a tensor would hold all of it in memory.
    return {
        name: shard_like(value, weight).clone() if _is_cut_too(value, weight) else value
        for name, value in values.items()
    }


def _arranged_like(value: Any, weight: torch.Tensor) -> Any:
    """Put the numbers of a tensor into a weight's order in memory: fused steps take both as they lie."""
    if not isinstance(value, torch.Tensor) or value.shape != weight.shape or value.stride() == weight.stride():
        return value
    return torch.empty_like(weight, dtype=value.dtype).copy_(value)


def _is_cut_too(value: Any, weight: torch.Tensor) -> bool:
    is_like = isinstance(value, torch.Tensor) and value.shape == weight.shape
    return is_like and is_sharded(weight) and not is_sharded(value)
