"""A linear rise before a fall, as a pure function of the step; nothing to store, nothing to step."""

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["Fall", "check_steps", "with_warmup"]

Fall: TypeAlias = Callable[[int, int], float]
"""(step, steps) -> share of the peak, where `step` of `steps` are behind; 1 at the beginning, 0 <= step <= steps."""


def with_warmup(fall: Fall, step: int, total_steps: int, warmup_steps: int) -> float:
    """Return the share of the peak learning rate at one optimizer step.

    Rises linearly over `warmup_steps` (the first step uses 1/`warmup_steps`, the last of them 1), then falls.

    Args:
        fall: what follows the rise.
        step: number of optimizer steps made before this one, from 0; beyond `total_steps` it counts as `total_steps`.
        total_steps: steps of the whole training, at least 1.
        warmup_steps: steps of the rise, 0 to `total_steps`.

    Returns:
        A factor in [0, 1].

    Raises:
        ValueError: a number is out of its range.

    Source: Goyal et al. 2017, arXiv 1706.02677, section 2.2, from near 0 rather than from the rate of one worker.
    """
    check_steps(step, total_steps, warmup_steps)
    if step >= total_steps:
        return fall(1, 1)
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    return fall(step - warmup_steps, total_steps - warmup_steps)


def check_steps(step: int, total_steps: int, warmup_steps: int) -> None:
    """Refuse numbers of steps that no training has.

    Raises:
        ValueError: names the numbers and their ranges.
    """
    if step < 0 or total_steps < 1 or not 0 <= warmup_steps <= total_steps:
        raise ValueError(
            f"step={step}, total_steps={total_steps}, warmup_steps={warmup_steps}: "
            "need step >= 0, total_steps >= 1 and 0 <= warmup_steps <= total_steps"
        )
