"""What parameters of all kinds share: their role, when they are there, and how they are described and checked."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, get_args

from search_spaces.bounds import Bound, parse_bound
from search_spaces.conditions import Condition, When
from search_spaces.configuration import JsonScalar
from search_spaces.errors import InvalidParameterError, did_you_mean
from search_spaces.ranges import STEP_TOLERANCE, is_number

__all__ = [
    "MUTATION_SPREAD",
    "NEIGHBOUR_DISTANCE",
    "Number",
    "ParameterBase",
    "Role",
    "described",
    "interval",
    "range_at",
    "settle",
    "settle_number",
]

Role: TypeAlias = Literal["architecture", "training", "data"]
"""Who reads a parameter: the network builder, the trainer, or the preparation of the data."""

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
    """

    role: Role = "training"
    when: When | None = None

    @property
    def condition(self) -> Condition:
        """When the parameter is there; empty: always."""
        assert self.when is None or isinstance(self.when, Condition)  # `settle` has made it one
        return _ALWAYS if self.when is None else self.when


@dataclass(frozen=True, slots=True, kw_only=True)
class Number(ParameterBase):
    """What a parameter with a range has.

    Attributes:
        at_least: a lower bound within [low, high] that depends on parameters before this one, such as `2 * width`.
        at_most: an upper bound of the same kind, such as `100 - a`.
    """

    at_least: str | None = None
    at_most: str | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether its range depends on other parameters."""
        return self.at_least is not None or self.at_most is not None

    @property
    def bounds(self) -> tuple[Bound | None, Bound | None]:
        """The lower and the upper bound that depend on other parameters."""
        lower, upper = (None if text is None else parse_bound(text) for text in (self.at_least, self.at_most))
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
    fields = asdict(parameter)
    fields.pop("note", None)
    for name in ("when", "at_least", "at_most"):
        if fields.get(name, ...) is None:
            del fields[name]
    if parameter.when is not None:
        fields["when"] = {name: list(allowed) for name, allowed in parameter.condition.items()}
    return {"type": kind} | fields


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
        values = Condition({name: allowed})[name]
        problems += [] if values else [f"when: {name} has no value with which the condition holds; give at least one"]
        problems += [f"when: {name}: {value!r} is no finite JSON scalar" for value in values if not _is_scalar(value)]
    return problems


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, bool | str) or is_number(value)


_ALWAYS = Condition({})
