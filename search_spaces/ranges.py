"""Arithmetic of numeric ranges: scales, positions on them, and what cannot be a range; it knows no parameters."""

import math
import sys
from decimal import Decimal
from typing import Final, TypeGuard

__all__ = [
    "STEP_TOLERANCE",
    "between",
    "grid_value",
    "is_integer",
    "is_number",
    "last_on_grid",
    "listed_grid",
    "mirrored",
    "position_between",
    "range_problems",
    "step_problems",
]

STEP_TOLERANCE: Final = 1e-8
"""How far off the grid, in steps, a number with a step may lie; the tolerance of Optuna's distributions."""
MOST_STEPS: Final = 10**6
"""More steps than this are beyond what a grid of floats can tell apart."""
MOST_LISTED: Final = 12
"""A grid of more values is not listed in full."""
LARGEST_BOUND: Final = 2**53
"""Beyond it neither JSON nor a float holds every whole number."""


def is_number(value: object) -> TypeGuard[float]:
    """Return whether the value is a finite int or float; a bool is none."""
    # The comparison is false for NaN, for infinity and for integers that no float can hold.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether the value is an int; a bool is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def position_between(value: float, low: float, high: float, log: bool) -> float:
    """Return where a value lies between low (0.0) and high (1.0), linearly or in the logarithm."""
    if log:
        return math.log(value / low) / math.log(high / low)
    return (value - low) / (high - low)


def between(position: float, low: float, high: float, log: bool) -> float:
    """Return the value at a position; the inverse of `position_between`, exact at both ends."""
    if position in (0.0, 1.0):
        return high if position else low
    return low * math.exp(position * math.log(high / low)) if log else low + position * (high - low)


def grid_value(low: float, step: float, index: int) -> float:
    """Return low + index * step as in decimal arithmetic, so that 0.1 + 2 * 0.1 is 0.3: one number, one spelling."""
    return float(_exact(low, step, index)) + 0.0  # never -0.0


def last_on_grid(low: float, high: float, step: float) -> int:
    """Return the index of the last value of the grid that is not above high."""
    return math.floor((high - low) / step + STEP_TOLERANCE)


def listed_grid(low: float, high: float, step: float) -> str:
    """Return the values of a grid as a person reads them: all of a few, the first and the last of many."""
    last = last_on_grid(low, high, step)
    shown = range(last + 1) if last < MOST_LISTED else (0, 1)
    texts = [f"{grid_value(low, step, index):g}" for index in shown]
    return ", ".join(texts if last < MOST_LISTED else [*texts, "...", f"{high:g}"])


def mirrored(position: float) -> float:
    """Fold any number into [0, 1], as a ray is folded between two mirrors."""
    folded = abs(position) % 2.0
    return 2.0 - folded if folded > 1.0 else folded


def range_problems(low: float, high: float, log: bool) -> list[str]:
    """Return why [low, high] cannot be searched, a sentence each."""
    problems = []
    if not low < high:
        problems.append(f"low={low!r} is not below high={high!r}; for one value only, use Categorical")
    if log and low <= 0:
        problems.append(f"low={low!r} has no logarithm; log=True needs low > 0")
    if max(abs(low), abs(high)) > LARGEST_BOUND:
        problems.append(f"[{low!r}, {high!r}] is too wide; bounds lie within 2**53")
    return problems


def step_problems(low: float, high: float, log: bool, step: float) -> list[str]:
    """Return why [low, high] cannot be cut into steps, a sentence each; low < high must hold."""
    if step <= 0:
        return [f"step={step!r} is not positive"]
    if log:
        return [f"step={step!r} and log=True exclude each other; leave one out"]
    steps = (high - low) / step
    if steps > MOST_STEPS:
        return [f"step={step!r} cuts [{low!r}, {high!r}] into more than {MOST_STEPS} steps; leave it out"]
    last = last_on_grid(low, high, step)
    if Decimal(repr(grid_value(low, step, last))) != _exact(low, step, last):
        return [f"low={low!r} and step={step!r} have too many digits for a grid; round them"]
    if steps + STEP_TOLERANCE < 1:
        return [f"step={step!r} is more than the whole range [{low!r}, {high!r}]"]
    return []


def _exact(low: float, step: float, index: int) -> Decimal:
    return Decimal(repr(low)) + index * Decimal(repr(step))
