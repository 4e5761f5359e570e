"""What is left of a space's parameters when some of them have one value each."""

from collections.abc import Mapping

from search_spaces.conditions import Condition, is_same
from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Categorical, Parameter
from search_spaces.structure import Parameters

__all__ = ["fixed_parameters", "spelled"]


def spelled(parameters: Parameters, constants: Mapping[str, JsonScalar]) -> dict[str, JsonScalar]:
    """Return constants in the spelling of their parameters; those that a parameter does not know stay as they are."""
    return {
        name: value if parameters[name].problem(value) else parameters[name].normalise(value)
        for name, value in constants.items()
    }


def fixed_parameters(parameters: Parameters, constants: Mapping[str, JsonScalar]) -> dict[str, Parameter]:
    """Return the parameters that are left when some have one value, whatever else the others are.

    A condition on a constant holds, and what the constant needs to be there takes its place; or it never does, and
    takes its parameter with it. A bound has the constants' numbers in it; of a constant that is there only sometimes it
    has them always, as no bound has a condition: it is narrower than it must be then, never wider.
    """
    left: dict[str, Parameter] = {}
    there: dict[str, Condition] = {}  # constant -> when it is there, by what is left; not in it: never
    for name, parameter in parameters.items():
        when = _what_is_left(parameter.condition, constants, left, there)
        if when is None:
            continue
        if name in constants:
            there[name] = when
        else:
            left[name] = _with_numbers(parameter, {key: constants[key] for key in there}, left).with_condition(when)
    return left


def _what_is_left(
    condition: Condition, constants: Mapping[str, JsonScalar], left: Parameters, there: Mapping[str, Condition]
) -> Condition | None:
    """The condition without constants; None: it never holds."""
    found = Condition({})
    for parent, allowed in condition.items():
        if parent in there and any(is_same(value, constants[parent]) for value in allowed):
            found = found.and_also(there[parent])
        elif parent in left:
            found = found.and_also({parent: allowed})
        else:
            return None
    return found if all(found.values()) else None


def _with_numbers(parameter: Parameter, constants: Mapping[str, JsonScalar], left: Parameters) -> Parameter:
    """The parameter with bounds in which constants are numbers, and of which those are gone whose parameters are."""
    if isinstance(parameter, Categorical) or not parameter.is_bounded:
        return parameter
    bounds = (None if bound is None else bound.fixed(constants) for bound in parameter.bounds)
    least, most = (b if b is not None and all(name in left for name in b.names) else None for b in bounds)
    return parameter.with_bounds(None if least is None else str(least), None if most is None else str(most))
