"""A parameter put into another place: under other names, with another role, or there less often."""

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from search_spaces.conditions import Condition, When
from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Categorical, Parameter, Role

__all__ = ["placed"]


def placed(
    given: Parameter | JsonScalar,
    *,
    names: Mapping[str, str] = MappingProxyType({}),
    role: Role | None = None,
    when: When | None = None,
) -> Parameter:
    """Return a parameter as it is in its new place.

    Args:
        given: the parameter, or a constant.
        names: new names of what its condition and its bounds speak of; the others stay.
        role: the new one; None: its own.
        when: a condition besides its own, by the new names.

    Raises:
        InvalidParameterError: it could never be there.
    """
    parameter = given if isinstance(given, Parameter) else Categorical(choices=(given,))
    condition = parameter.condition.renamed(names)
    condition = condition if when is None else condition.and_also(Condition(when))
    role = role or parameter.role
    if isinstance(parameter, Categorical):
        choices = tuple(map(parameter.plain, parameter.choices))  # with lists in place of their labels
        return replace(parameter, choices=choices, when=condition, role=role)
    least, most = _renamed(parameter.at_least, names), _renamed(parameter.at_most, names)
    moved = replace(parameter, when=condition, role=role, at_least=least, at_most=most)
    object.__setattr__(moved, "note", parameter.note)  # of how the range was read at first
    return moved


def _renamed(bound: str | None, names: Mapping[str, str]) -> str | None:
    return None if bound is None else re.sub(r"\b[A-Za-z_]\w*", lambda found: names.get(found[0], found[0]), bound)
