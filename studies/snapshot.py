"""All trials of a study in memory: reads a trial until it has ended, and never again.

The number of statements is the same for ten trials and for ten thousand.
"""

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, or_, select

from studies.json_text import from_json
from studies.schema import optuna_tables as optuna
from studies.schema.tables import automl_trials
from studies.transactions import Transactions
from studies.trial import JsonScalar, Trial, TrialState
from studies.trial_rows import state_of

__all__ = ["Snapshot", "read_trials"]

_NOT_FINITE = {"INF_POS": float("inf"), "INF_NEG": float("-inf"), "NAN": float("nan")}
_NEVER_READ = -1
_FEW = 500
"""Trials that are looked up by their keys one by one."""


class Snapshot:
    """The trials of one study, as they were when `refreshed` was last called; safe for threads."""

    def __init__(self, transactions: Transactions, study_id: int) -> None:
        self._transactions = transactions
        self._study_id = study_id
        self._lock = threading.Lock()
        self._trials: dict[int, Trial] = {}
        self._in_order: tuple[Trial, ...] = ()
        self._unfinished: frozenset[int] = frozenset()
        self._last_id = _NEVER_READ

    def refreshed(self) -> tuple[Trial, ...]:
        """Read new and unfinished trials and return all of them, in order of their numbers."""
        with self._lock:
            changed = self._transactions.read(self._read_changed)
            if changed:
                self._take(changed)
            return self._in_order

    def _read_changed(self, connection: Connection) -> list[Trial]:
        # A study's trials are inserted under a lock on its row, so that no smaller key appears later.
        trials = optuna.trials.c
        is_changed = or_(trials.trial_id > self._last_id, trials.trial_id.in_(self._unfinished))
        return read_trials(connection, (trials.study_id == self._study_id) & is_changed)

    def _take(self, changed: list[Trial]) -> None:
        self._trials |= {trial.number: trial for trial in changed}
        self._in_order = tuple(self._trials[number] for number in sorted(self._trials))
        self._unfinished = frozenset(trial.id for trial in changed if not trial.state.is_ended)
        self._last_id = max(self._last_id, max(trial.id for trial in changed))


def read_trials(connection: Connection, which: ColumnElement[bool]) -> list[Trial]:
    """Read trials by a condition on the columns of Optuna's `trials`; at most six statements."""
    own = automl_trials.c
    rows = connection.execute(
        select(optuna.trials, own.configuration, own.attempt, own.owner, own.infeasible)
        .select_from(optuna.trials.outerjoin(automl_trials, own.trial_id == optuna.trials.c.trial_id))
        .where(which)
        .order_by(optuna.trials.c.trial_id)
    ).all()
    if not rows:
        return []
    configurations = _foreign_configurations(connection, which, [r.trial_id for r in rows if r.configuration is None])
    ids = [row.trial_id for row in rows]
    values = _values(connection, which, ids)
    reports = _reports(connection, which, ids)
    attributes = _rows_of(connection, optuna.trial_user_attributes, which, ids)
    return [
        _trial(
            row,
            from_json(row.configuration) if row.configuration is not None else configurations.get(row.trial_id, {}),
            values.get(row.trial_id),
            reports[row.trial_id],
            {attribute.key: from_json(attribute.value_json) for attribute in attributes[row.trial_id]},
        )
        for row in rows
    ]


def _trial(
    row: Row[Any],
    configuration: Mapping[str, JsonScalar],
    value: float | None,
    reports: Mapping[int, float],
    attributes: dict[str, Any],
) -> Trial:
    state = state_of(row.state, row.attempt, row.infeasible)
    return Trial(
        id=row.trial_id,
        number=row.number,
        state=state,
        configuration=configuration,
        reports=reports,
        value=value if state is TrialState.COMPLETE else None,
        cause=attributes.pop("cause", None),
        attempt=row.attempt or 0,
        owner=row.owner,
        started_at=_utc(row.datetime_start),
        ended_at=_utc(row.datetime_complete),
        attributes=attributes,
    )


def _rows_of(
    connection: Connection, table: Table, which: ColumnElement[bool], ids: Sequence[int]
) -> defaultdict[int, list[Row[Any]]]:
    """Read the rows of a child table: trial key -> rows in order of insertion.

    A few trials are found by their keys through the table's index; many by the condition, because a statement takes a
    limited number of values.
    """
    query = select(table).order_by(*table.primary_key.columns)
    if len(ids) <= _FEW:
        query = query.where(table.c.trial_id.in_(ids))
    else:
        query = query.join(optuna.trials, optuna.trials.c.trial_id == table.c.trial_id).where(which)
    rows: defaultdict[int, list[Row[Any]]] = defaultdict(list)
    for row in connection.execute(query):
        rows[row.trial_id].append(row)
    return rows


def _values(connection: Connection, which: ColumnElement[bool], ids: Sequence[int]) -> dict[int, float]:
    rows = _rows_of(connection, optuna.trial_values, which, ids)
    return {trial_id: _number(first.value, first.value_type) for trial_id, (first, *_) in rows.items()}


def _reports(
    connection: Connection, which: ColumnElement[bool], ids: Sequence[int]
) -> defaultdict[int, dict[int, float]]:
    reports: defaultdict[int, dict[int, float]] = defaultdict(dict)
    for trial_id, rows in _rows_of(connection, optuna.intermediate_values, which, ids).items():
        for row in sorted(rows, key=lambda row: row.step):
            reports[trial_id][row.step] = _number(row.intermediate_value, row.intermediate_value_type)
    return reports


def _foreign_configurations(
    connection: Connection, which: ColumnElement[bool], ids: Sequence[int]
) -> dict[int, dict[str, JsonScalar]]:
    """Configurations of trials that plain Optuna made: what it was asked to enqueue, then what it suggested."""
    if not ids:
        return {}
    found: dict[int, dict[str, JsonScalar]] = {}
    for trial_id, rows in _rows_of(connection, optuna.trial_system_attributes, which, ids).items():
        for row in rows:
            if row.key == "fixed_params":
                found[trial_id] = from_json(row.value_json)
    for trial_id, rows in _rows_of(connection, optuna.trial_params, which, ids).items():
        found[trial_id] = {row.param_name: _external(row.distribution_json, row.param_value) for row in rows}
    return found


@lru_cache(maxsize=4096)
def _external(distribution_json: str, internal_value: float) -> JsonScalar:
    from optuna.distributions import json_to_distribution

    value: JsonScalar = json_to_distribution(distribution_json).to_external_repr(internal_value)
    return value


def _number(value: float | None, kind: str) -> float:
    return _NOT_FINITE[kind] if value is None else value


def _utc(time: datetime | None) -> datetime | None:
    return time.replace(tzinfo=UTC) if time is not None else None
