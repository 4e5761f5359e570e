"""How the parameters of a space depend on each other: which are there, and what they may be, given those before them.

Parameters are read in their order: a condition or a bound speaks of parameters that come before it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Parameter

__all__ = ["Parameters", "Structure", "bound_problem", "dependents", "is_there", "parents", "within"]

Parameters: TypeAlias = Mapping[str, Parameter]
"""Name -> parameter, in the order of every configuration."""


@dataclass(frozen=True, slots=True)
class Structure:
    """The parameters of a space, with what every walk over them asks.

    Attributes:
        parameters: those of the space.
        parents: the names of those that others depend on.
        has_conditions: whether one of them is there only sometimes.
        depends: whether what one of them may be, or its being there, depends on others.
    """

    parameters: Parameters
    parents: frozenset[str]
    has_conditions: bool
    depends: bool

    @classmethod
    def of(cls, parameters: Parameters) -> "Structure":
        """Look once at all parameters."""
        has_conditions = any(parameter.when is not None for parameter in parameters.values())
        return cls(
            parameters=parameters,
            parents=frozenset(parent for parameter in parameters.values() for parent in parents(parameter)),
            has_conditions=has_conditions,
            depends=has_conditions or any(parameter.is_bounded for parameter in parameters.values()),
        )


def is_there(parameter: Parameter, values: Mapping[str, JsonScalar]) -> bool:
    """Whether a parameter is there, given the values of those before it."""
    return parameter.when is None or parameter.condition.holds(values)


def within(parameter: Parameter, values: Mapping[str, JsonScalar]) -> Parameter | float | None:
    """Return what a parameter may be, given the values of those before it.

    Returns:
        The parameter with the range that is left, the only value that is left, or None: none is.
    """
    return parameter.narrowed(values)


def bound_problem(parameter: Parameter, value: JsonScalar, values: Mapping[str, JsonScalar]) -> str | None:
    """Return why a value is outside the bounds that other parameters set, or None."""
    left = within(parameter, values)
    if left is parameter or (isinstance(left, Parameter) and left.problem(value) is None):
        return None
    if not isinstance(left, Parameter) and left is not None and left == value:
        return None
    return f"is outside its bounds: {parameter.bounds_in_words(values)}"


def parents(parameter: Parameter) -> tuple[str, ...]:
    """Return the names of the parameters that a parameter depends on."""
    names = list(parameter.condition)
    names += [name for bound in parameter.bounds if bound is not None for name in bound.names]
    return tuple(dict.fromkeys(names))


def dependents(parameters: Parameters, name: str) -> frozenset[str]:
    """Return the names of the parameters whose being there, or whose range, depends on one; also through others."""
    found: set[str] = set()
    for other, parameter in parameters.items():  # in order: what it depends on was met before
        if any(parent == name or parent in found for parent in parents(parameter)):
            found.add(other)
    return frozenset(found)
