"""What each study of a database has come to, in a number of statements that does not grow."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, false, func, or_, select

from studies.schema import optuna_tables as optuna
from studies.schema.tables import automl_reports, automl_trials
from studies.trial import TrialState
from studies.trial_rows import state_of

__all__ = ["StudySummary", "count_states", "summarise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySummary:
    """A study in a line.

    Attributes:
        name: the study.
        direction: `maximize` or `minimize`; of a study with several objectives all of them, with commas.
        counts: number of trials in every state, without imported ones.
        imported: number of trials that were trained elsewhere.
        best_value: the best objective of a COMPLETE trial; None when there is none, or several objectives.
        last_activity: the latest start, report or end of a trial, UTC; None before the first.
    """

    name: str
    direction: str
    counts: Mapping[TrialState, int]
    imported: int
    best_value: float | None
    last_activity: datetime | None


def summarise(connection: Connection) -> tuple[StudySummary, ...]:
    """Sum up all studies, in order of creation."""
    # The names first: PostgreSQL shows each statement what was committed before it, and a study that comes to be
    # meanwhile must not appear without its direction.
    names = select(optuna.studies.c.study_id, optuna.studies.c.study_name).order_by(optuna.studies.c.study_id)
    studies = connection.execute(names).all()
    directions = _directions(connection)
    counts = count_states(connection)
    imported = _count_imported(connection)
    extremes = {row.study_id: row for row in connection.execute(_extremes())}
    activity = _last_activity(connection)
    return tuple(
        StudySummary(
            name=row.study_name,
            direction=", ".join(directions[row.study_id]),
            counts=counts.get(row.study_id, dict.fromkeys(TrialState, 0)),
            imported=imported.get(row.study_id, 0),
            best_value=_best(directions[row.study_id], extremes.get(row.study_id)),
            last_activity=activity.get(row.study_id),
        )
        for row in studies
        if row.study_id in directions  # or it was deleted meanwhile
    )


def count_states(connection: Connection, study_id: int | None = None) -> dict[int, dict[TrialState, int]]:
    """Count the trials in every state, without imported ones: study key -> state -> number; of all studies, or one."""
    own = automl_trials.c
    kinds = (optuna.trials.c.study_id, optuna.trials.c.state, own.attempt > 0, own.infeasible)
    query = (
        select(*kinds, func.count())
        .select_from(optuna.trials.outerjoin(automl_trials, own.trial_id == optuna.trials.c.trial_id))
        .where(_is_own())
        .group_by(*kinds)
    )
    if study_id is not None:
        query = query.where(optuna.trials.c.study_id == study_id)
    counts: dict[int, dict[TrialState, int]] = {}
    for study, state, was_started, infeasible, number in connection.execute(query):
        states = counts.setdefault(study, dict.fromkeys(TrialState, 0))
        states[state_of(state, int(bool(was_started)), infeasible)] += number
    return counts


def _is_own() -> ColumnElement[bool]:
    """Whether a trial was trained here; one of plain Optuna has no row of ours."""
    imported = automl_trials.c.imported
    return or_(imported.is_(None), imported == false())


def _count_imported(connection: Connection) -> dict[int, int]:
    own = automl_trials.c
    query = select(own.study_id, func.count()).where(own.imported != false()).group_by(own.study_id)
    return {study: number for study, number in connection.execute(query)}


def _directions(connection: Connection) -> dict[int, list[str]]:
    table = optuna.study_directions.c
    directions: dict[int, list[str]] = {}
    for row in connection.execute(select(table.study_id, table.direction).order_by(table.study_id, table.objective)):
        directions.setdefault(row.study_id, []).append("maximize" if row.direction == "MAXIMIZE" else "minimize")
    return directions


def _extremes() -> Select[Any]:
    values = optuna.trial_values
    return (
        select(
            optuna.trials.c.study_id,
            func.min(values.c.value).label("smallest"),
            func.max(values.c.value).label("largest"),
        )
        .select_from(
            values.join(optuna.trials, optuna.trials.c.trial_id == values.c.trial_id).outerjoin(
                automl_trials, automl_trials.c.trial_id == optuna.trials.c.trial_id
            )
        )
        .where(_is_own(), optuna.trials.c.state == "COMPLETE", values.c.value_type == "FINITE", values.c.objective == 0)
        .group_by(optuna.trials.c.study_id)
    )


def _best(directions: list[str], extremes: Any) -> float | None:
    if extremes is None or len(directions) != 1:
        return None
    best: float = extremes.largest if directions == ["maximize"] else extremes.smallest
    return best


def _last_activity(connection: Connection) -> dict[int, datetime]:
    trials = optuna.trials.c
    ends = select(
        trials.study_id, func.max(trials.datetime_start).label("start"), func.max(trials.datetime_complete).label("end")
    ).group_by(trials.study_id)
    reports = (
        select(trials.study_id, func.max(automl_reports.c.reported_at).label("report"))
        .select_from(automl_reports.join(optuna.trials, trials.trial_id == automl_reports.c.trial_id))
        .group_by(trials.study_id)
    )
    reported = {row.study_id: row.report for row in connection.execute(reports)}
    latest = {}
    for row in connection.execute(ends):
        times = [time for time in (row.start, row.end, reported.get(row.study_id)) if time is not None]
        if times:
            latest[row.study_id] = max(times).replace(tzinfo=UTC)
    return latest
