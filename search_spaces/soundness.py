"""What cannot be in a space: names, conditions and bounds that mean nothing, or leave a parameter no place."""

from collections.abc import Iterator, Sequence
from typing import Any

from search_spaces.conditions import Condition
from search_spaces.configuration import JsonScalar
from search_spaces.errors import did_you_mean
from search_spaces.foresight import impossible
from search_spaces.parameters import Parameter
from search_spaces.structure import Parameters, parents

__all__ = ["name_problems", "settled_conditions", "structure_problems"]


def name_problems(space: object, names: Sequence[object]) -> Iterator[str]:
    """Yield why a name cannot be that of a space, or those of its parameters, a sentence each."""
    for name in (space, *names):
        if not isinstance(name, str) or not name.isidentifier():
            yield f"{name!r} is no identifier"


def settled_conditions(parameters: Parameters) -> dict[str, Parameter]:
    """Return the parameters with conditions whose values are spelled as their parents spell them.

    `1` of a real number is 1.0, and a list is its label. What no parent allows stays as it is.
    """
    return {
        name: parameter
        if parameter.when is None
        else parameter.with_condition(
            Condition(
                {parent: _spelled(parent, allowed, parameters) for parent, allowed in parameter.condition.items()}
            )
        )
        for name, parameter in parameters.items()
    }


def structure_problems(parameters: Parameters) -> Iterator[str]:
    """Yield every condition and bound that speaks of what does not come before it, or that leaves nothing.

    Args:
        parameters: with conditions as `settled_conditions` spells them.
    """
    before: dict[str, Parameter] = {}
    whole: dict[str, Condition] = {}  # with what the parents need themselves
    for name, parameter in parameters.items():
        own = [
            *(f"{name} depends on {_not_before(p, name, parameters)}" for p in parents(parameter) if p not in before),
            *_value_problems(name, parameter, before),
            *_number_problems(name, parameter, before),
        ]
        yield from own
        whole[name] = parameter.condition
        for parent in parameter.condition:
            whole[name] = whole[name].and_also(whole.get(parent, Condition({})))
        yield from _contradictions(name, parameter, whole[name]) if not own else ()
        before[name] = parameter
    yield from impossible(parameters)


def _spelled(parent: str, allowed: tuple[JsonScalar, ...], parameters: Parameters) -> tuple[JsonScalar, ...]:
    if parent not in parameters:
        return allowed
    parameter = parameters[parent]
    given: tuple[Any, ...] = allowed
    if any(map(parameter.problem, given)):
        if parameter.problem(given) is not None:
            return tuple(value if parameter.problem(value) else parameter.normalise(value) for value in given)
        given = (given,)  # `kernel: [3, 3]` is one list, not two threes
    return tuple(map(parameter.normalise, given))


def _value_problems(name: str, parameter: Parameter, before: Parameters) -> Iterator[str]:
    for parent, allowed in parameter.condition.items():
        for value in dict.fromkeys(allowed) if parent in before else ():
            if problem := before[parent].problem(value):
                yield f"{name}: when: {parent}={_told(value)} {problem}"


def _number_problems(name: str, parameter: Parameter, before: Parameters) -> Iterator[str]:
    for bound in parameter.bounds:
        for own in () if bound is None else bound.names:
            if own in before and before[own].ends is None:
                yield f"{name}: the bound {own!r} is no number"


def _contradictions(name: str, parameter: Parameter, whole: Condition) -> Iterator[str]:
    """Yield why a condition can never hold: its parents are there only with other values."""
    for parent, allowed in whole.items():
        if not allowed:
            yield (
                f"{name}: when {parameter.condition} can never hold: what it names is there only with other values of "
                f"{parent}"
            )


def _told(value: object) -> str:
    return repr(list(value)) if isinstance(value, tuple) else repr(value)


def _not_before(parent: str, name: str, parameters: Parameters) -> str:
    if parent in parameters:
        return f"{parent}, which must come before it"
    suggestion = did_you_mean(parent, [other for other in parameters if other != name])
    return f"{parent!r}, which is no parameter{suggestion and ';'}{suggestion}"
