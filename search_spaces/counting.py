"""How many configurations a space has, and how many of them differ; each one in turn where there are few."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.parameters import Parameter
from search_spaces.rules import Rules
from search_spaces.soundness import structure_problems
from search_spaces.structure import Parameters, dependents, is_there, parents, within

__all__ = ["every_configuration", "number_of_configurations", "number_of_different"]

_State: TypeAlias = tuple[tuple[str, JsonScalar], ...]

MOST_STATES = 10**4
"""Combinations of values that parameters further on depend on; of more of them at a time nothing is counted."""
MOST_STEPS = 3 * 10**5
"""Values that are looked at in all; a second or so."""
MOST_COUNTED = 200_000
"""Configurations that are looked at one by one to count the different ones among them."""


def number_of_configurations(parameters: Parameters) -> int | None:
    """Return how many configurations there are; None: infinitely many, or too many dependencies to count them.

    The parameters are passed in their order, together with the number of ways to arrive at each combination of those
    values that matter further on.
    """
    if any(p.when is None and not p.is_bounded and p.size() is None for p in parameters.values()):
        return None
    matters = _last_use(parameters)
    counts: dict[_State, int] = {(): 1}
    steps = 0
    for place, (name, parameter) in enumerate(parameters.items()):
        following: dict[_State, int] = defaultdict(int)
        drops = place in matters.values()  # what only this parameter has waited for
        for state, count in counts.items():
            for value, ways in _steps(name, parameter, dict(state), name in matters):
                if ways is None:
                    return None
                known = state + value
                kept = tuple(pair for pair in known if matters[pair[0]] > place) if drops else known
                following[kept] += count * ways
                steps += 1
                if len(following) > MOST_STATES or steps > MOST_STEPS:
                    return None
        counts = following
    return sum(counts.values())


def every_configuration(parameters: Parameters) -> Iterator[Configuration]:
    """Yield every configuration, the last parameter's values first; parameters without an end raise ValueError."""
    return (Configuration(values) for values in _extended({}, tuple(parameters.items())))


def number_of_different(parameters: Parameters, rules: Rules) -> int | None:
    """Return how many different networks the architecture's parameters describe, infeasible ones too.

    None: infinitely many, or too many to be told apart one by one.

    Raises:
        SpaceRuleError: the canonical form cannot be told.
    """
    own = {name: p for name, p in parameters.items() if p.role == "architecture"}
    if not own or any(True for _ in structure_problems(own)):
        return None
    over = rules.canonical_over
    told = own if over is None else {name: own[name] for name in own if name in over}
    if rules.canonical is None or not told:
        return number_of_configurations(own)
    count = number_of_configurations(told)
    if count is None or count > MOST_COUNTED or any(dependents(own, name) - set(told) for name in told):
        return None
    others = number_of_configurations({name: p for name, p in own.items() if name not in told})
    if others is None:
        return None
    return others * len({Configuration(rules.form(part)) for part in every_configuration(told)})


def _steps(
    name: str, parameter: Parameter, values: Mapping[str, JsonScalar], matters: bool
) -> Iterator[tuple[_State, int | None]]:
    """Yield (what becomes known, in how many ways; None: infinitely many)."""
    if not is_there(parameter, values):
        yield (), 1
        return
    left = within(parameter, values)
    if left is None:
        return
    if not isinstance(left, Parameter):
        yield ((name, left),) if matters else (), 1
    elif (size := left.size()) is None:
        yield (), None
    elif matters:
        yield from ((((name, value),), 1) for value in left.values())
    else:
        yield (), size


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
