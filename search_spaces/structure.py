"""How the parameters of a space depend on each other: which are there, and what they may be, given those before them.

Parameters are read in their order: a condition or a bound speaks of parameters that come before it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from search_spaces.configuration import JsonScalar
from search_spaces.errors import did_you_mean
from search_spaces.parameters import Categorical, Parameter

__all__ = [
    "Parameters",
    "bound_problem",
    "dependents",
    "fixed_parameters",
    "is_there",
    "parents",
    "structure_problems",
    "within",
]

Parameters: TypeAlias = Mapping[str, Parameter]
"""Name -> parameter, in the order of every configuration."""


def is_there(parameter: Parameter, values: Mapping[str, JsonScalar]) -> bool:
    """Whether a parameter is there, given the values of those before it."""
    return parameter.when is None or parameter.condition.holds(values)


def within(parameter: Parameter, values: Mapping[str, JsonScalar]) -> Parameter | float | None:
    """Return what a parameter may be, given the values of those before it.

    Returns:
        The parameter with the range that is left, the only value that is left, or None: none is.
    """
    if isinstance(parameter, Categorical) or not parameter.is_bounded:
        return parameter
    return parameter.narrowed(values)


def bound_problem(parameter: Parameter, value: JsonScalar, values: Mapping[str, JsonScalar]) -> str | None:
    """Return why a value is outside the bounds that other parameters set, or None."""
    left = within(parameter, values)
    if left is parameter or (isinstance(left, Parameter) and left.problem(value) is None):
        return None
    if not isinstance(left, Parameter) and left is not None and left == value:
        return None
    return f"is outside its bounds: {bounds_in_words(parameter, values)}"


def bounds_in_words(parameter: Parameter, values: Mapping[str, JsonScalar]) -> str:
    """Return the bounds that other parameters set, with their values: `at most 100 - a = 30`."""
    assert not isinstance(parameter, Categorical)
    texts = zip(("at least", "at most"), (parameter.at_least, parameter.at_most), parameter.bounds, strict=True)
    numbers = ((side, text, bound.value(values)) for side, text, bound in texts if bound is not None)
    return " and ".join(f"{side} {text} = {number:g}" for side, text, number in numbers if number is not None)


def parents(parameter: Parameter) -> tuple[str, ...]:
    """Return the names of the parameters that a parameter depends on."""
    names = list(parameter.condition)
    if not isinstance(parameter, Categorical):
        names += [name for bound in parameter.bounds if bound is not None for name in bound.names]
    return tuple(dict.fromkeys(names))


def dependents(parameters: Parameters, name: str) -> frozenset[str]:
    """Return the names of the parameters whose being there, or whose range, depends on one; also through others."""
    found: set[str] = set()
    for other, parameter in parameters.items():  # in order: what it depends on was met before
        if any(parent == name or parent in found for parent in parents(parameter)):
            found.add(other)
    return frozenset(found)


def fixed_parameters(parameters: Parameters, constants: Mapping[str, JsonScalar]) -> dict[str, Parameter]:
    """Return the parameters that are left when some have one value, whatever else the others are.

    A condition on a constant holds, and is dropped, or never does, and takes its parameter with it; a bound has the
    constants' numbers in it.
    """
    left: dict[str, Parameter] = {}
    for name, parameter in parameters.items():
        tests = parameter.condition
        known = {parent: (allowed,) for parent, allowed in constants.items() if parent in tests}
        is_gone = any(parent not in left and parent not in constants for parent in tests)
        if name in constants or is_gone or any(not tests.and_also(known)[parent] for parent in known):
            continue
        when = {parent: allowed for parent, allowed in tests.items() if parent not in constants} or None
        left[name] = replace(_with_numbers(parameter, constants, left), when=when)
    return left


def _with_numbers(parameter: Parameter, constants: Mapping[str, JsonScalar], left: Parameters) -> Parameter:
    """The parameter with bounds in which constants are numbers, and of which those are gone whose parameters are."""
    if isinstance(parameter, Categorical) or not parameter.is_bounded:
        return parameter
    bounds = (None if bound is None else bound.fixed(constants) for bound in parameter.bounds)
    least, most = (b if b is not None and all(name in left for name in b.names) else None for b in bounds)
    return replace(
        parameter,
        at_least=None if least is None else str(least),
        at_most=None if most is None else str(most),
    )


def structure_problems(parameters: Parameters) -> Iterator[str]:
    """Yield every condition and bound that speaks of what does not come before it, or of values that cannot be."""
    before: dict[str, Parameter] = {}
    for name, parameter in parameters.items():
        for parent in parents(parameter):
            if parent not in before:
                yield f"{name} depends on {_not_before(parent, name, parameters)}"
        for parent, allowed in parameter.condition.items():
            for problem in (before[parent].problem(value) for value in allowed) if parent in before else ():
                if problem is not None:
                    yield f"{name}: when: {parent} {problem}"
        if not isinstance(parameter, Categorical):
            names = [own for bound in parameter.bounds if bound is not None for own in bound.names if own in before]
            yield from (f"{name}: the bound {own!r} is no number" for own in names if _is_categorical(before[own]))
        before[name] = parameter


def _not_before(parent: str, name: str, parameters: Parameters) -> str:
    if parent in parameters:
        return f"{parent}, which must come before it"
    return f"{parent!r}, which is no parameter;{did_you_mean(parent, [other for other in parameters if other != name])}"


def _is_categorical(parameter: Parameter) -> bool:
    return isinstance(parameter, Categorical) and not all(
        isinstance(choice, int | float) and not isinstance(choice, bool) for choice in parameter.choices
    )
