"""From the rows of both schemas to trials: first the heads, then only what belongs to the trials that are wanted.

Each function runs in the caller's transaction. The number of statements does not grow with the number of trials.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import CompoundSelect, Connection, Row, Select, Table, bindparam, or_, select, union_all

from studies.json_text import from_json
from studies.schema import optuna_tables as optuna
from studies.schema.clock import epoch_now
from studies.schema.tables import automl_studies, automl_trials
from studies.standing import STANDING_COLUMNS, Standing, standing_of
from studies.study_rows import StudyRow
from studies.trial import JsonScalar, Trial, TrialState
from studies.trial_rows import state_of

__all__ = ["heads_among", "heads_query", "read_trials", "trial_of"]

_NOT_FINITE = {"INF_POS": float("inf"), "INF_NEG": float("-inf"), "NAN": float("nan")}
_FEW = 500
"""Trials that are looked up by their keys one by one; a statement takes a limited number of values."""

_PORTION = 50
"""New trials that are asked for first. Without a limit PostgreSQL's plan for any `last` reads the whole table."""

# Short names: psycopg prepares a statement anew each time when its text is longer than 4096 characters.
_T, _OWN_TRIALS = optuna.trials.alias("t"), automl_trials.alias("o")
_OWN = _OWN_TRIALS.c
_TRIALS = select(
    _T,
    _OWN.configuration,
    _OWN.attempt,
    _OWN.owner,
    _OWN.infeasible,
    _OWN.revision,
    _OWN.losses,
    _OWN.imported,
    (_OWN.expires_at - epoch_now()).label("expires_in_s"),
).select_from(_T.outerjoin(_OWN_TRIALS, _OWN.trial_id == _T.c.trial_id))
_OF_STUDY = _T.c.study_id == bindparam("study")
# A sum has no index: the few trials are found by their keys, not among all trials of the study.
_OF_STUDY_BY_KEYS = _T.c.study_id + 0 == bindparam("study")
_IS_NEW = _T.c.trial_id > bindparam("last")
_IS_LISTED = _T.c.trial_id.in_(bindparam("listed", expanding=True))
_IS_LATER = _T.c.trial_id >= bindparam("first")


def _beside_standing(trials: Select[Any] | CompoundSelect[Any]) -> Select[Any]:
    """The study's standing beside each of these trials; one row without a trial when there is none."""
    heads = trials.subquery()
    source = optuna.studies.outerjoin(automl_studies, automl_studies.c.study_id == optuna.studies.c.study_id).outerjoin(
        heads, heads.c.study_id == optuna.studies.c.study_id
    )
    query = select(*heads.c, *STANDING_COLUMNS, automl_studies.c.token).select_from(source)
    return query.where(optuna.studies.c.study_id == bindparam("study")).order_by(heads.c.trial_id)


_ALL = _beside_standing(_TRIALS.where(_OF_STUDY))
_NEW_OR_LISTED = _beside_standing(_TRIALS.where(_OF_STUDY_BY_KEYS, or_(_IS_NEW, _IS_LISTED)))
_NEW = _TRIALS.where(_OF_STUDY_BY_KEYS, _IS_NEW).order_by(_T.c.trial_id)
_FEW_NEW_OR_LISTED = _beside_standing(
    union_all(select(_NEW.limit(_PORTION).subquery()), _TRIALS.where(_OF_STUDY_BY_KEYS, _IS_LISTED))
)
_LATER = _beside_standing(_TRIALS.where(_OF_STUDY, _IS_LATER))


def heads_query(
    study: StudyRow, last_id: int | None, unfinished: Collection[int]
) -> tuple[Select[Any], dict[str, Any]]:
    """What asks where the study and its trials stand: those with a key above `last_id` (None: all), and the unfinished.

    Returns:
        The statement, and its values.
    """
    if last_id is None:
        return _ALL, {"study": study.id}
    if len(unfinished) <= _FEW:
        return _FEW_NEW_OR_LISTED, {"study": study.id, "last": last_id, "listed": list(unfinished)}
    return _LATER, {"study": study.id, "first": min(unfinished)}


def heads_among(
    connection: Connection, study: StudyRow, last_id: int | None, unfinished: Collection[int], rows: Sequence[Row[Any]]
) -> tuple[Sequence[Row[Any]], Standing | None]:
    """Read the answer to `heads_query`, and ask again when it may be cut short.

    Returns:
        The rows, in order of their keys; and the standing, None when the study was deleted.
    """
    is_new = [row.trial_id is not None and row.trial_id > last_id for row in rows] if last_id is not None else []
    if sum(is_new) >= _PORTION and len(unfinished) <= _FEW:
        values = {"study": study.id, "last": last_id, "listed": list(unfinished)}
        rows = connection.execute(_NEW_OR_LISTED, values).all()
    if not rows or (study.token is not None and rows[0].token != study.token):
        return [], None
    return [row for row in rows if row.trial_id is not None], standing_of(rows[0])


def read_trials(
    connection: Connection, study_id: int, heads: Sequence[Row[Any]], known: Mapping[int, Trial]
) -> list[Trial]:
    """Read the rest of these trials; at most five statements.

    Args:
        connection: holds the transaction.
        study_id: their study.
        heads: rows of `heads_among`.
        known: key -> the same trials as they were read before, those of ours. A trial that runs on has the attributes
            that it had.
    """
    if not heads:
        return []
    foreign = {row.trial_id for row in heads if row.configuration is None}
    told = {row.trial_id for row in heads if not _runs_on(row, known.get(row.trial_id))}
    complete = {row.trial_id for row in heads if row.state == "COMPLETE"}
    configurations = _foreign_configurations(connection, study_id, foreign)
    reports = _reports(connection, study_id, {row.trial_id for row in heads})
    values = _values(connection, study_id, complete)
    attributes = _rows_of(connection, optuna.trial_user_attributes, study_id, told)
    return [
        trial_of(
            row,
            from_json(row.configuration) if row.configuration is not None else configurations.get(row.trial_id, {}),
            values.get(row.trial_id),
            reports.get(row.trial_id, {}),
            {fact.key: from_json(fact.value_json) for fact in attributes.get(row.trial_id, ())}
            if row.trial_id in told
            else known[row.trial_id].attributes,
        )
        for row in heads
    ]


def _runs_on(row: Row[Any], before: Trial | None) -> bool:
    """Whether a trial was running when it was read before, and runs still; not when another owner has taken it over."""
    if before is None or before.state is not TrialState.RUNNING:
        return False
    return (row.state, row.attempt) == ("RUNNING", before.attempt)


def trial_of(
    row: Row[Any],
    configuration: Mapping[str, JsonScalar],
    value: float | None,
    reports: Mapping[int, float],
    attributes: Mapping[str, Any],
) -> Trial:
    """Put a trial together from its row of `heads_among` and what belongs to it."""
    facts = dict(attributes)
    state = state_of(row.state, row.attempt, row.infeasible)
    return Trial(
        id=row.trial_id,
        number=row.number,
        state=state,
        configuration=configuration,
        reports=reports,
        value=value if state is TrialState.COMPLETE else None,
        cause=facts.pop("cause", None),
        attempt=row.attempt or 0,
        losses=row.losses or 0,
        is_imported=bool(row.imported),
        owner=row.owner,
        started_at=_utc(row.datetime_start),
        ended_at=_utc(row.datetime_complete),
        attributes=facts,
    )


@lru_cache(maxsize=64)
def _children_of_few(table: Table) -> Select[Any]:
    """The rows of a child table that belong to listed trials, in order of insertion."""
    query = select(table).where(table.c.trial_id.in_(bindparam("trials", expanding=True)))
    return query.order_by(*table.primary_key.columns)


@lru_cache(maxsize=64)
def _children_of_many(table: Table) -> Select[Any]:
    """The rows of a child table that belong to the trials of a study from a key on, in order of insertion."""
    query = select(table).join(optuna.trials, optuna.trials.c.trial_id == table.c.trial_id)
    where = (optuna.trials.c.study_id == bindparam("study")) & (optuna.trials.c.trial_id >= bindparam("first"))
    return query.where(where).order_by(*table.primary_key.columns)


def _rows_of(
    connection: Connection, table: Table, study_id: int, trials: Collection[int]
) -> Mapping[int, list[Row[Any]]]:
    """Read the rows of a child table: trial key -> rows in order of insertion."""
    if not trials:
        return {}
    if len(trials) <= _FEW:
        found = connection.execute(_children_of_few(table), {"trials": list(trials)})
    else:
        found = connection.execute(_children_of_many(table), {"study": study_id, "first": min(trials)})
    rows: defaultdict[int, list[Row[Any]]] = defaultdict(list)
    for row in found:
        rows[row.trial_id].append(row)
    return rows


def _values(connection: Connection, study_id: int, trials: Collection[int]) -> dict[int, float]:
    rows = _rows_of(connection, optuna.trial_values, study_id, trials)
    return {trial_id: _number(first.value, first.value_type) for trial_id, (first, *_) in rows.items()}


def _reports(connection: Connection, study_id: int, trials: Collection[int]) -> dict[int, dict[int, float]]:
    return {
        trial_id: {
            row.step: _number(row.intermediate_value, row.intermediate_value_type)
            for row in sorted(rows, key=lambda row: row.step)
        }
        for trial_id, rows in _rows_of(connection, optuna.intermediate_values, study_id, trials).items()
    }


def _foreign_configurations(
    connection: Connection, study_id: int, trials: Collection[int]
) -> dict[int, dict[str, JsonScalar]]:
    """Configurations of trials that plain Optuna made: what it was asked to enqueue, then what it suggested."""
    found: dict[int, dict[str, JsonScalar]] = {}
    for trial_id, rows in _rows_of(connection, optuna.trial_system_attributes, study_id, trials).items():
        for row in rows:
            if row.key == "fixed_params":
                found[trial_id] = from_json(row.value_json)
    for trial_id, rows in _rows_of(connection, optuna.trial_params, study_id, trials).items():
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
