"""Ways through a search space: drawing, changing and joining configurations, so that each one that comes out is valid.

All of them walk over the parameters in their order: whether a parameter is there, and its range, is known when those
before it have their values.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, TypeAlias

from search_spaces.conditions import Condition
from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.foresight import foreseen, needs_of
from search_spaces.parameters import Parameter
from search_spaces.structure import Parameters, Structure, is_there, within

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["Draw", "NoValueLeftError", "completed", "crossed", "drawn", "foresighted", "mutated", "near"]

Draw: TypeAlias = Callable[[str, Parameter, Mapping[str, JsonScalar]], JsonScalar]
"""Name, parameter with the range that is left, and the values before it -> one of its values."""

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
            raise NoValueLeftError(f"{name} has no value left: {parameter.bounds_in_words(values)}")
        if not isinstance(left, Parameter):
            values[name] = left
        elif name in kept:
            values[name] = left.moved_into(kept[name])
        else:
            values[name] = draw(name, left, values)
    return Configuration(values)


def drawn(structure: Structure, kept: Mapping[str, JsonScalar], rng: "Generator") -> Configuration:
    """Return a configuration with the kept values, the rest drawn at random; see `completed`.

    What a kept value needs is drawn from what it needs: with a kept kernel the operation is one that has a kernel.
    Where a draw has left a parameter nothing, the next ones look ahead.

    Raises:
        NoValueLeftError: no draw gave every parameter a value.
    """
    needed = _needed(structure.parameters, kept) if structure.has_conditions else {}
    missing: set[str] = set()

    def draw(name: str, parameter: Parameter, values: Mapping[str, JsonScalar]) -> JsonScalar:
        missing.add(name)
        possible = [value for value in needed.get(name, ()) if parameter.problem(value) is None]
        return possible[int(rng.integers(len(possible)))] if possible else parameter.sample(rng)

    try:
        return completed(structure.parameters, kept, draw)
    except NoValueLeftError:
        if not missing:
            raise  # another draw would draw nothing else
        looking_ahead = foresighted(structure.parameters, draw)
    for _ in range(MOST_DRAWS):
        try:
            return completed(structure.parameters, kept, looking_ahead)
        except NoValueLeftError as error:
            last = error
    raise NoValueLeftError(f"{last}; {MOST_DRAWS} draws of {', '.join(sorted(missing))} found no way out") from last


def foresighted(parameters: Parameters, draw: Draw) -> Draw:
    """Return a draw that takes no value with which the bounds of a later parameter leave it nothing."""
    needs = needs_of(parameters)

    def look_ahead(name: str, parameter: Parameter, values: Mapping[str, JsonScalar]) -> JsonScalar:
        left = foreseen(name, parameter, values, parameters, needs)
        if left is None:
            raise NoValueLeftError(f"{name} has no value left with which those that depend on it have one")
        return draw(name, left, values) if isinstance(left, Parameter) else left

    return look_ahead


def mutated(
    structure: Structure, parent: Configuration, rng: "Generator", names: Collection[str]
) -> Configuration | None:
    """Return the configuration with one of the named parameters changed, or None where none has a second value.

    What the change brings in is drawn, what it takes out is dropped, what it bounds is moved.
    """
    mutable = [name for name in names if name in parent]
    while mutable:
        name = mutable[int(rng.integers(len(mutable)))]
        left = within(structure.parameters[name], parent)
        if isinstance(left, Parameter) and left.size() != 1:
            if name not in structure.parents:
                return parent.replace(**{name: left.mutate(parent[name], rng)})
            child = _with_another(structure, parent, name, left, rng)
            if child is not None:
                return child
        mutable.remove(name)
    return None


def _with_another(
    structure: Structure, parent: Configuration, name: str, left: Parameter, rng: "Generator"
) -> Configuration | None:
    """The configuration with another value of one parameter, or None where each leaves another parameter nothing."""
    try:
        return drawn(structure, {**parent, name: left.mutate(parent[name], rng)}, rng)
    except NoValueLeftError:
        before = {key: parent[key] for key in takewhile(name.__ne__, structure.parameters) if key in parent}
        ahead = foreseen(name, left, before, structure.parameters, needs_of(structure.parameters))
    if not isinstance(ahead, Parameter) or ahead.size() == 1 or ahead.problem(parent[name]) is not None:
        return None
    try:
        return drawn(structure, {**parent, name: ahead.mutate(parent[name], rng)}, rng)
    except NoValueLeftError:
        return None


def crossed(structure: Structure, first: Configuration, second: Configuration, rng: "Generator") -> Configuration:
    """Return a child with each value from one of its parents, both equally likely (uniform crossover)."""
    takes = (rng.random(len(structure.parameters)) < 0.5).tolist()
    pairs = zip(structure.parameters, takes, strict=True)
    if not structure.depends:
        return Configuration({name: (first if takes_first else second)[name] for name, takes_first in pairs})
    kept: dict[str, JsonScalar] = {}
    for name, takes_first in pairs:
        one, other = (first, second) if takes_first else (second, first)
        if name in one or name in other:
            kept[name] = one[name] if name in one else other[name]
    try:
        return drawn(structure, kept, rng)
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


def _needed(parameters: Parameters, kept: Mapping[str, JsonScalar]) -> Mapping[str, tuple[JsonScalar, ...]]:
    """Name -> the values with which everything that is kept is there, for the names that are not kept themselves."""
    needed = Condition({})
    for name in reversed(tuple(parameters)):  # what a need needs comes before it
        if parameters[name].when is not None and (name in kept or name in needed):
            missing = {parent: allowed for parent, allowed in parameters[name].condition.items() if parent not in kept}
            needed = needed.and_also(missing) if missing else needed
    return needed
