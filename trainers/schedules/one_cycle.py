"""One cycle: a learning rate that rises from far below its peak, and falls to nearly nothing."""

import math

from trainers.schedules.warmup import check_steps

__all__ = ["one_cycle"]

FIRST = 1.0 / 25.0
"""Share of the peak at the first step."""
LAST = FIRST / 1e4
"""Share of the peak at the last step."""


def one_cycle(step: int, total_steps: int, rising_steps: int) -> float:
    """Return the share of the peak learning rate at one optimizer step.

    Args:
        step: number of optimizer steps made before this one, from 0; beyond the last step it counts as the last.
        total_steps: steps of the whole training, at least 1.
        rising_steps: steps of the rise, 0 to `total_steps`; the last of them uses the peak, with 0 the first step.

    Returns:
        A factor in (0, 1].

    Raises:
        ValueError: a number is out of its range.

    Source: Smith and Topin 2018, arXiv 1708.07120, in the form of fastai and torch's OneCycleLR, two halves of a
        cosine; momentum stays as it is.
    """
    check_steps(step, total_steps, rising_steps)
    last, peak = total_steps - 1, max(0, rising_steps - 1)
    step = min(step, last)
    if step == peak:
        return 1.0
    if step < peak:
        return _along_cosine(FIRST, 1.0, step / peak)
    return _along_cosine(1.0, LAST, (step - peak) / (last - peak))


def _along_cosine(start: float, end: float, way: float) -> float:
    return end + (start - end) * 0.5 * (1.0 + math.cos(math.pi * way))
