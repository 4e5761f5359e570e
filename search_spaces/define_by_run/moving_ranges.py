"""Ranges that move with other values, as in `suggest_int("b", 0, 100 - a)`: the bound that they follow, if any.

Only sums of multiples of numbers are found, as these are what bounds of a space are (`search_spaces.bounds`).
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Categorical, Integer, Parameter
from search_spaces.ranges import is_number

__all__ = ["Sighting", "moving_range", "same_range"]

_DIGITS = 10
"""Significant digits of a factor: what floats lose on the way is not meant."""
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Sighting:
    """A range in one run.

    Attributes:
        values: the answers of the run before it.
        parameter: the range.
    """

    values: Mapping[str, JsonScalar]
    parameter: Parameter


_Side: TypeAlias = tuple[float, Mapping[str, float]]
"""An end of a range: a constant, and a factor for each parameter that it follows."""


def same_range(left: Parameter | float | None, asked: Parameter) -> bool:
    """Whether what a space leaves of a range is what was asked for; a range of one value is written in two ways."""
    if left is None or isinstance(left, Categorical):
        return isinstance(left, Categorical) and isinstance(asked, Categorical) and _choices(left) == _choices(asked)
    ends, asked_ends = (_ends(left) if isinstance(left, Parameter) else (left, left)), _ends(asked)
    if ends is None or asked_ends is None:
        return False
    if not all(
        math.isclose(*pair, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE) for pair in zip(ends, asked_ends, strict=True)
    ):
        return False
    if not isinstance(left, Parameter) or isinstance(asked, Categorical):
        return ends[0] == ends[1]
    return (type(left), left.log, left.step) == (type(asked), asked.log, asked.step)


def moving_range(sightings: Sequence[Sighting], before: Mapping[str, Parameter]) -> Parameter | None:
    """Return the widest range with the bounds that the seen ones follow; None: they follow no sum.

    Args:
        sightings: the range in several runs, which differ.
        before: the parameters that were asked for before it, with their widest ranges.
    """
    models = [seen.parameter for seen in sightings if not isinstance(seen.parameter, Categorical)]
    ends = [ends for seen in sightings if (ends := _ends(seen.parameter)) is not None]
    if len({(type(model), model.log, model.step) for model in models}) != 1 or len(ends) < len(sightings):
        return None
    lower = _followed([low for low, _ in ends], sightings, before)
    upper = _followed([high for _, high in ends], sightings, before)
    if lower is None or upper is None:
        return None
    low, high = _furthest(lower, before, -1), _furthest(upper, before, 1)
    at_least, at_most = _in_words(lower), _in_words(upper)
    model = models[0]
    if isinstance(model, Integer):
        return replace(model, low=round(low), high=round(high), at_least=at_least, at_most=at_most)
    return replace(model, low=low, high=high, at_least=at_least, at_most=at_most)


def _followed(ends: Sequence[float], sightings: Sequence[Sighting], before: Collection[str]) -> _Side | None:
    """Return how an end follows the numbers that were there in all runs; None: it follows no sum of them."""
    import numpy as np

    shared = set.intersection(*(set(seen.values) for seen in sightings))
    names = [
        name
        for name in sightings[0].values
        if name in shared and name in before and all(is_number(seen.values[name]) for seen in sightings)
    ]
    table = np.array([[*(seen.values[name] for name in names), 1.0] for seen in sightings], dtype=float)
    wanted = np.array(ends, dtype=float)
    *factors, constant = (_rounded(float(number)) for number in np.linalg.lstsq(table, wanted)[0])
    if not np.allclose(table @ np.array([*factors, constant]), wanted, rtol=_TOLERANCE, atol=1e-6):
        return None
    return constant, {name: factor for name, factor in zip(names, factors, strict=True) if factor}


def _furthest(side: _Side, before: Mapping[str, Parameter], sign: int) -> float:
    """Return where an end lies at most (sign 1) or at least (sign -1)."""
    total, factors = side
    for name, factor in factors.items():
        ends = _ends(before[name])
        assert ends is not None  # its values are numbers
        total += sign * max(sign * factor * end for end in ends)
    return _rounded(total)


def _ends(parameter: Parameter) -> tuple[float, float] | None:
    if not isinstance(parameter, Categorical):
        return parameter.low, parameter.high
    numbers = [choice for choice in parameter.choices if is_number(choice)]
    return (min(numbers), max(numbers)) if len(numbers) == len(parameter.choices) else None


def _choices(parameter: Categorical) -> tuple[object, ...]:
    return (parameter.ordered, *((type(choice), choice) for choice in parameter.choices))


def _rounded(number: float) -> float:
    near_zero = abs(number) < _TOLERANCE
    return 0.0 if near_zero else float(f"{number:.{_DIGITS}g}")


def _in_words(side: _Side) -> str | None:
    constant, factors = side
    if not factors:
        return None
    parts = [f"{constant:.{_DIGITS}g}"] if constant else []
    parts += [name if factor == 1.0 else f"{factor:.{_DIGITS}g} * {name}" for name, factor in factors.items()]
    return " + ".join(parts).replace("+ -1 * ", "- ").replace("+ -", "- ")
