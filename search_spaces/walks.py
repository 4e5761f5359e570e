"""Ways through a search space: drawing, changing and joining configurations, so that each one that comes out is valid.

All of them walk over the parameters in their order: whether a parameter is there, and its range, is known when those
before it have their values.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from search_spaces.conditions import Condition
from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.parameters import Categorical, Parameter
from search_spaces.structure import Parameters, bounds_in_words, is_there, within

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["Draw", "NoValueLeftError", "completed", "crossed", "drawn", "middle", "mutated", "near"]

Draw: TypeAlias = Callable[[str, Parameter], JsonScalar]
"""Name and parameter, with the range that is left -> one of its values."""

MOST_DRAWS = 100
"""Draws of a configuration in which a bound leaves a parameter no value, before the search for one is given up."""


class NoValueLeftError(ValueError):
    """The values of other parameters leave a parameter none."""


def completed(parameters: Parameters, kept: Mapping[str, JsonScalar], draw: Draw) -> Configuration:
    """Return the configuration that keeps what can be kept, and draws the rest.

    Args:
        parameters: those of the space.
        kept: allowed values of some of them. A value of a parameter that is not there is dropped; one outside the
            bounds that other parameters set is moved to the nearer end.
        draw: what is missing.

    Raises:
        NoValueLeftError: the bounds leave a parameter no value.
    """
    values: dict[str, JsonScalar] = {}
    for name, parameter in parameters.items():
        if not is_there(parameter, values):
            continue
        left = within(parameter, values)
        if left is None:
            raise NoValueLeftError(f"{name} has no value left: {bounds_in_words(parameter, values)}")
        if not isinstance(left, Parameter):
            values[name] = left
        elif name in kept:
            values[name] = _moved_into(left, kept[name])
        else:
            values[name] = draw(name, left)
    return Configuration(values)


def drawn(parameters: Parameters, kept: Mapping[str, JsonScalar], rng: "Generator") -> Configuration:
    """Return a configuration with the kept values, the rest drawn at random; see `completed`.

    What a kept value needs is drawn from what it needs: with a kept kernel the operation is one that has a kernel.

    Raises:
        NoValueLeftError: no draw gave every parameter a value.
    """
    needed = _needed(parameters, kept)

    def draw(name: str, parameter: Parameter) -> JsonScalar:
        possible = [value for value in needed.get(name, ()) if parameter.problem(value) is None]
        return possible[int(rng.integers(len(possible)))] if possible else parameter.sample(rng)

    for _ in range(MOST_DRAWS - 1):
        try:
            return completed(parameters, kept, draw)
        except NoValueLeftError:
            continue
    return completed(parameters, kept, draw)


def mutated(
    parameters: Parameters, parent: Configuration, rng: "Generator", names: Collection[str]
) -> Configuration | None:
    """Return the configuration with one of the named parameters changed, or None where none has a second value.

    What the change brings in is drawn, what it takes out is dropped, what it bounds is moved.
    """
    mutable = [name for name in parameters if name in names and name in parent]
    while mutable:
        name = mutable[int(rng.integers(len(mutable)))]
        left = within(parameters[name], parent)
        if isinstance(left, Parameter) and left.size() != 1:
            value = left.mutate(parent[name], rng)
            if parameters[name].when is None and not _is_parent_of_any(parameters, name):
                return parent.replace(**{name: value})
            try:
                return drawn(parameters, {**parent, name: value}, rng)
            except NoValueLeftError:
                pass  # this value takes another parameter all of its own: try another change
        mutable.remove(name)
    return None


def crossed(parameters: Parameters, first: Configuration, second: Configuration, rng: "Generator") -> Configuration:
    """Return a child with each value from one of its parents, both equally likely (uniform crossover)."""
    takes = rng.random(len(parameters)) < 0.5
    kept: dict[str, JsonScalar] = {}
    for name, takes_first in zip(parameters, takes, strict=True):
        one, other = (first, second) if takes_first else (second, first)
        if name in one or name in other:
            kept[name] = one[name] if name in one else other[name]
    try:
        return drawn(parameters, kept, rng)
    except NoValueLeftError:
        return first  # what is valid for itself


def near(parameters: Parameters, centre: Configuration, names: Collection[str], draw: Draw) -> Iterator[Configuration]:
    """Yield the configurations that differ in one of the named parameters, by one choice or one step."""
    for name in parameters:
        if name not in names or name not in centre:
            continue
        left = within(parameters[name], centre)
        for value in left.neighbours(centre[name]) if isinstance(left, Parameter) else ():
            try:
                yield completed(parameters, {**centre, name: value}, draw)
            except NoValueLeftError:
                continue


def middle(parameter: Parameter) -> JsonScalar:
    """Return a value that stands for all: the one in the middle of a range, the first choice."""
    if isinstance(parameter, Categorical):
        first: JsonScalar = parameter.choices[0]
        return first
    return parameter.at(0.5)


def _moved_into(parameter: Parameter, value: JsonScalar) -> JsonScalar:
    if isinstance(parameter, Categorical):
        return parameter.normalise(value)
    assert isinstance(value, int | float)
    moved = min(max(value, parameter.low), parameter.high)
    if parameter.problem(moved) is None:
        return parameter.normalise(moved)
    return parameter.at(parameter.position(moved))  # the grid begins elsewhere now


def _needed(parameters: Parameters, kept: Mapping[str, JsonScalar]) -> Mapping[str, tuple[JsonScalar, ...]]:
    """Name -> the values with which everything that is kept is there, for the names that are not kept themselves."""
    needed = Condition({})
    for name in reversed(tuple(parameters)):  # what a need needs comes before it
        if name in kept or name in needed:
            missing = {parent: allowed for parent, allowed in parameters[name].condition.items() if parent not in kept}
            needed = needed.and_also(missing)
    return needed


def _is_parent_of_any(parameters: Parameters, name: str) -> bool:
    return any(
        name in parameter.condition
        or (not isinstance(parameter, Categorical) and any(b is not None and name in b.names for b in parameter.bounds))
        for parameter in parameters.values()
        if parameter.when is not None or (not isinstance(parameter, Categorical) and parameter.is_bounded)
    )
