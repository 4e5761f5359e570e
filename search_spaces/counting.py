"""How many configurations a space has, and how many of them differ; each one in turn where there are few."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.parameters import Parameter
from search_spaces.structure import Parameters, is_there, parents, within

__all__ = ["every_configuration", "number_of_configurations"]

_State: TypeAlias = tuple[tuple[str, JsonScalar], ...]

MOST_STATES = 10**6
"""Combinations of values that parameters further on depend on; of more of them at a time nothing is counted."""


def number_of_configurations(parameters: Parameters) -> int | None:
    """Return how many configurations there are; None: infinitely many, or too many dependencies to count them.

    The parameters are passed in their order, together with the number of ways to arrive at each combination of those
    values that matter further on.
    """
    matters = _last_use(parameters)
    counts: dict[_State, float] = {(): 1}
    for place, (name, parameter) in enumerate(parameters.items()):
        following: dict[_State, float] = defaultdict(int)
        for state, count in counts.items():
            values = dict(state)
            for value, ways in _steps(name, parameter, values, matters):
                known = {**values, **value}
                kept = tuple((key, item) for key, item in known.items() if matters.get(key, -1) > place)
                following[kept] += count * ways
            if len(following) > MOST_STATES:
                return None
        counts = following
    total = sum(counts.values())
    return None if total == math.inf else int(total)


def every_configuration(parameters: Parameters) -> Iterator[Configuration]:
    """Yield every configuration, the last parameter's values first; parameters without an end raise ValueError."""
    return (Configuration(values) for values in _extended({}, tuple(parameters.items())))


def _steps(
    name: str, parameter: Parameter, values: Mapping[str, JsonScalar], matters: Mapping[str, int]
) -> Iterator[tuple[Mapping[str, JsonScalar], float]]:
    """Yield (what becomes known, in how many ways)."""
    if not is_there(parameter, values):
        yield {}, 1
        return
    left = within(parameter, values)
    if left is None:
        return
    if not isinstance(left, Parameter):
        yield {name: left}, 1
    elif (size := left.size()) is None:
        yield {}, math.inf
    elif name in matters:
        yield from (({name: value}, 1) for value in left.values())
    else:
        yield {}, size


def _last_use(parameters: Parameters) -> dict[str, int]:
    """Name -> place of the last parameter that depends on it."""
    return {parent: place for place, own in enumerate(parameters.values()) for parent in parents(own)}


def _extended(
    values: dict[str, JsonScalar], rest: tuple[tuple[str, Parameter], ...]
) -> Iterator[dict[str, JsonScalar]]:
    if not rest:
        yield values
        return
    name, parameter = rest[0]
    if not is_there(parameter, values):
        yield from _extended(values, rest[1:])
        return
    left = within(parameter, values)
    options = left.values() if isinstance(left, Parameter) else () if left is None else (left,)
    for value in options:
        yield from _extended({**values, name: value}, rest[1:])
