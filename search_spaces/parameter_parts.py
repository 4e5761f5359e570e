"""What parameters of all kinds share: their role, when they are there, and how they are described and checked."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self, TypeAlias, get_args

from search_spaces.bounds import Bound, parse_bound
from search_spaces.conditions import Condition, When, allowed_values
from search_spaces.configuration import JsonScalar
from search_spaces.errors import InvalidParameterError, did_you_mean
from search_spaces.ranges import STEP_TOLERANCE, is_number

__all__ = [
    "MUTATION_SPREAD",
    "NEIGHBOUR_DISTANCE",
    "Number",
    "ParameterBase",
    "PlainValue",
    "Role",
    "described",
    "interval",
    "range_at",
    "settle",
    "settle_number",
]

Role: TypeAlias = Literal["architecture", "training", "data"]
"""Who reads a parameter: the network builder, the trainer, or the preparation of the data."""

PlainValue: TypeAlias = JsonScalar | tuple[JsonScalar, ...]
"""A value as whoever trains with it reads it."""

MUTATION_SPREAD = 0.2
"""Standard deviation of a mutation of a number, as a share of its range on its scale."""
NEIGHBOUR_DISTANCE = 0.1
"""How far a neighbour lies where there are no steps, as a share of the range on its scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterBase:
    """What a parameter of any kind has.

    Attributes:
        role: who reads it.
        when: the values that other parameters must have for this one to be there; None: it is always there.
        note: what a person should know of how it was read; empty: nothing.
    """

    role: Role = "training"
    when: When | None = None
    note: str = field(init=False, default="", compare=False, repr=False)

    @property
    def condition(self) -> Condition:
        """When the parameter is there; empty: always."""
        assert self.when is None or isinstance(self.when, Condition)  # `settle` has made it one
        return _ALWAYS if self.when is None else self.when

    @property
    def is_bounded(self) -> bool:
        """Whether what it may be depends on other parameters' numbers."""
        return False

    @property
    def bounds(self) -> tuple[Bound | None, Bound | None]:
        """The lower and the upper bound that depend on other parameters."""
        return None, None

    @property
    def bound_texts(self) -> tuple[str | None, str | None]:
        """The two bounds as they were given."""
        return None, None

    def bounds_in_words(self, values: Mapping[str, JsonScalar]) -> str:
        """Return the bounds that other parameters set, with their values: `at most 100 - a = 30`."""
        texts = zip(("at least", "at most"), self.bound_texts, self.bounds, strict=True)
        numbers = ((side, text, bound.value(values)) for side, text, bound in texts if bound is not None)
        return " and ".join(f"{side} {text} = {number:g}" for side, text, number in numbers if number is not None)

    def with_condition(self, condition: Condition) -> Self:
        """Return the same parameter, there when another condition holds; with an empty one always."""
        moved = copy.copy(self)
        object.__setattr__(moved, "when", condition or None)
        return moved

    def plain(self, value: JsonScalar) -> "PlainValue":
        """Return the value as whoever trains with it reads it."""
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Number(ParameterBase):
    """What a parameter with a range has.

    Attributes:
        at_least: a lower bound within [low, high] that depends on parameters before this one, such as `2 * width`.
        at_most: an upper bound of the same kind, such as `100 - a`.
    """

    at_least: str | None = None
    at_most: str | None = None

    def with_bounds(self, at_least: str | None, at_most: str | None) -> Self:
        """Return the same parameter with other bounds that depend on parameters."""
        moved = copy.copy(self)
        object.__setattr__(moved, "at_least", at_least)
        object.__setattr__(moved, "at_most", at_most)
        return moved

    @property
    def is_bounded(self) -> bool:
        """Whether its range depends on other parameters."""
        return self.at_least is not None or self.at_most is not None

    @property
    def bound_texts(self) -> tuple[str | None, str | None]:
        """The two bounds as they were given."""
        return self.at_least, self.at_most

    @property
    def bounds(self) -> tuple[Bound | None, Bound | None]:
        """The lower and the upper bound that depend on other parameters."""
        lower, upper = (None if text is None else parse_bound(text) for text in self.bound_texts)
        return lower, upper


def settle(parameter: ParameterBase, problems: list[str]) -> None:
    """Check what all parameters have and make it what it is kept as.

    Raises:
        InvalidParameterError: there are problems, or the role or the condition cannot be; all are listed.
    """
    problems = [*problems, *_role_problems(parameter)]
    if parameter.when is not None:
        problems += _condition_problems(parameter.when)
    if problems:
        raise InvalidParameterError(f"{type(parameter).__name__}: {'; '.join(problems)}")
    if parameter.when is not None:
        object.__setattr__(parameter, "when", Condition(parameter.when) if parameter.when else None)


def settle_number(parameter: Number, problems: list[str]) -> None:
    """Check also the bounds that depend on other parameters; see `settle`."""
    problems = list(problems)
    for name in ("at_least", "at_most"):
        text = getattr(parameter, name)
        if text is not None:
            try:
                parse_bound(str(text))
            except ValueError as error:
                problems.append(f"{name}: {error}")
            else:
                object.__setattr__(parameter, name, str(text))
    settle(parameter, problems)


def described(kind: str, parameter: ParameterBase) -> dict[str, Any]:
    """Return a JSON-safe description; what is not there is left out, as it was before it could be there."""
    given = {one.name: getattr(parameter, one.name) for one in fields(parameter) if one.init}
    for name in ("when", "at_least", "at_most"):
        if given.get(name, ...) is None:
            del given[name]
    if parameter.when is not None:
        given["when"] = {name: [_as_json(v) for v in allowed] for name, allowed in parameter.condition.items()}
    return {"type": kind} | given


def interval(low: float, high: float, log: bool) -> str:
    """Return a range as a person reads it."""
    return f"[{low!r}, {high!r}]" + (" (log scale)" if log else "")


def range_at(parameter: Number, low: float, high: float, values: Mapping[str, JsonScalar]) -> tuple[float, float]:
    """Return the range within [low, high] that other parameters' values leave; it may be empty (low > high)."""
    lower, upper = parameter.bounds
    least = None if lower is None else lower.value(values)
    most = None if upper is None else upper.value(values)
    # 3 * 0.1 is 0.30000000000000004: a bound is as exact as the floats it was computed from.
    slack = STEP_TOLERANCE * max(abs(low), abs(high)) * 1e-4
    return (
        low if least is None else max(low, least - slack if low < least else low),
        high if most is None else min(high, most + slack if most < high else high),
    )


def _role_problems(parameter: ParameterBase) -> list[str]:
    roles = get_args(Role)
    if parameter.role in roles:
        return []
    suggestion = did_you_mean(str(parameter.role), roles)
    return [f"role={parameter.role!r} is unknown;{suggestion} roles: {', '.join(roles)}"]


def _condition_problems(when: object) -> list[str]:
    if not isinstance(when, Mapping):
        return [f"when={when!r} is no mapping; write a name and its values, such as {{'operation': ['conv3x3']}}"]
    problems = [f"when: {name!r} is no name of a parameter" for name in when if not isinstance(name, str)]
    for name, allowed in ((name, allowed) for name, allowed in when.items() if isinstance(name, str)):
        values = allowed_values(allowed)
        problems += [] if values else [f"when: {name} has no value with which the condition holds; give at least one"]
        problems += [f"when: {name}: {value!r} is no finite JSON scalar" for value in values if not _is_value(value)]
    return problems


def _is_value(value: object) -> bool:
    return all(map(_is_scalar, value)) if isinstance(value, tuple) else _is_scalar(value)


def _as_json(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, bool | str) or is_number(value)


_ALWAYS = Condition({})
