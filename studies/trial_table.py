"""Trials as a table: one row per trial, one typed column per fact, parameter and attribute; a pure function of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from search_spaces.strict_json import strict_json
from studies.trial import Trial

__all__ = ["Column", "Kind", "columns_of", "facts_of", "in_text"]

Kind: TypeAlias = Literal["integer", "number", "boolean", "text", "moment"]
"""What a column holds: int of 64 bits, float, bool, str, or datetime with UTC; None where a trial has nothing."""

_Fact: TypeAlias = Callable[[Trial], object]


def _duration_s(trial: Trial) -> float | None:
    if trial.started_at is None or trial.ended_at is None:
        return None
    return (trial.ended_at - trial.started_at).total_seconds()


_FACTS: Mapping[str, tuple[Kind, _Fact]] = {
    "number": ("integer", lambda trial: trial.number),
    "state": ("text", lambda trial: trial.state.value),
    "value": ("number", lambda trial: trial.value),
    "cause": ("text", lambda trial: trial.cause),
    "attempt": ("integer", lambda trial: trial.attempt),
    "losses": ("integer", lambda trial: trial.losses),
    "last_epoch": ("integer", lambda trial: trial.last_epoch),
    "started_at": ("moment", lambda trial: trial.started_at),
    "ended_at": ("moment", lambda trial: trial.ended_at),
    "duration_s": ("number", _duration_s),
    "imported": ("boolean", lambda trial: trial.is_imported),
}
"""What every trial has; `duration_s` is from its first start to its end, rests between attempts included."""
_EXACT = 2**53
"""Up to here every int is a float of the same value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of the table.

    Attributes:
        name: unique among the columns of a table.
        kind: what its values are.
        values: one per trial; None where a trial has none.
    """

    name: str
    kind: Kind
    values: tuple[object, ...]


def columns_of(trials: Sequence[Trial]) -> tuple[Column, ...]:
    """Lay out trials as columns: the facts that all have, then parameters, then attributes by their first appearance.

    Parameters are called `param_NAME` and attributes `attribute_NAME`, so that one with the name of a fact stays apart
    from it. A column is of numbers or booleans when all its values are; anything else is text, see `in_text`.
    """
    facts = [facts_of(trial) for trial in trials]
    fixed = [_column(name, kind, [fact[name] for fact in facts]) for name, (kind, _) in _FACTS.items()]
    parameters = _spread("param_", [trial.configuration for trial in trials])
    attributes = _spread("attribute_", [trial.attributes for trial in trials])
    return (*fixed, *parameters, *attributes)


def facts_of(trial: Trial) -> dict[str, object]:
    """What every trial has, by the names of its columns."""
    return {name: fact(trial) for name, (_, fact) in _FACTS.items()}


def in_text(value: object) -> str:
    """A value as the text of a cell, from which a number can be read back exactly.

    Text stays as it is, times are ISO 8601 with microseconds, nothing is empty, lists and mappings are JSON.
    """
    match value:
        case None:
            return ""
        case str():
            # Half of a pair of code units, which JSON can hold, is no Unicode text.
            return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case datetime():
            return value.isoformat(timespec="microseconds")
        case _:
            return strict_json(value)


def _spread(prefix: str, rows: Sequence[Mapping[str, object]]) -> list[Column]:
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    return [_column(in_text(f"{prefix}{name}"), _kind(values), values) for name, values in columns.items()]


def _column(name: str, kind: Kind, values: Iterable[object]) -> Column:
    if kind == "text":
        values = (None if value is None else in_text(value) for value in values)
    return Column(name=name, kind=kind, values=tuple(values))


def _kind(values: Iterable[object]) -> Kind:
    present = [value for value in values if value is not None]
    kinds = {type(value) for value in present}
    if kinds == {bool}:
        return "boolean"
    if kinds == {int} and all(-(2**63) <= value < 2**63 for value in present if isinstance(value, int)):
        return "integer"
    if kinds and kinds <= {int, float} and all(_is_exact(value) for value in present):
        return "number"
    return "text"


def _is_exact(value: object) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and abs(value) <= _EXACT)
