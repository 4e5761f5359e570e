"""The rows of a study itself: name, direction, specification, attributes.

Each function runs in the caller's transaction.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Connection, bindparam, delete, select, update

from studies.errors import DirectionMismatchError, StorageError
from studies.json_text import from_json, to_json
from studies.names import Direction
from studies.schema import optuna_tables as optuna
from studies.schema.tables import automl_checkpoints, automl_reports, automl_spaces, automl_studies, automl_trials
from studies.standing import Limits, write_limits
from studies.upsert import insert_missing, upsert

__all__ = [
    "StudyRow",
    "delete_study_rows",
    "ensure_own_row",
    "find_study",
    "insert_study",
    "lock_study",
    "read_specification",
    "read_study_attributes",
    "study_names",
    "write_specification",
    "write_study_attribute",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRow:
    """What never changes in a study."""

    id: int
    name: str
    direction: Direction
    token: str | None = None
    """Tells it from a later study of the same key; None: it has none, as plain Optuna or an older form made it."""


def insert_study(
    connection: Connection, name: str, direction: Direction, specification: Mapping[str, Any], limits: Limits
) -> StudyRow:
    """Insert a study, or find the one that another process was quicker to insert, which stays as it is.

    Raises:
        DirectionMismatchError: the study exists and optimises the other way.
    """
    text = to_json(dict(specification), f"the specification of study {name!r}")
    is_new = insert_missing(connection, optuna.studies, ["study_name"], {"study_name": name})
    if is_new:
        _insert_direction(connection, name, direction)
    row = find_study(connection, name)
    if row is None:
        raise StorageError(f"study {name!r} was deleted at the moment of its creation; try again")
    if row.direction != direction:
        raise DirectionMismatchError(name, existing=row.direction, wanted=direction)
    if not _insert_own_row(connection, row.id, text):
        return row
    write_limits(connection, row.id, limits)
    return find_study(connection, name) or row


def _insert_own_row(connection: Connection, study_id: int, specification: str) -> bool:
    row = {"study_id": study_id, "specification": specification, "token": secrets.token_hex(8)}
    return insert_missing(connection, automl_studies, ["study_id"], row)


def ensure_own_row(connection: Connection, study_id: int) -> None:
    """Give a study of plain Optuna the row that holds its limits, where it has none yet."""
    _insert_own_row(connection, study_id, "{}")


def _insert_direction(connection: Connection, name: str, direction: Direction) -> None:
    study = select(optuna.studies.c.study_id).where(optuna.studies.c.study_name == name).scalar_subquery()
    values = {"study_id": study, "direction": direction.upper(), "objective": 0}
    connection.execute(optuna.study_directions.insert().values(values))


def find_study(connection: Connection, name: str) -> StudyRow | None:
    """Find a study by its name.

    Raises:
        StorageError: it has several objectives.
    """
    query = (
        select(optuna.studies.c.study_id, optuna.study_directions.c.direction, automl_studies.c.token)
        .join_from(optuna.studies, optuna.study_directions)
        .outerjoin(automl_studies, automl_studies.c.study_id == optuna.studies.c.study_id)
        .where(optuna.studies.c.study_name == name)
    )
    rows = connection.execute(query).all()
    if len(rows) > 1:
        raise StorageError(f"study {name!r} has {len(rows)} objectives, and a search here has one; give another study")
    if not rows:
        return None
    # Optuna takes a direction that is not set for minimize.
    direction: Direction = "maximize" if rows[0].direction == "MAXIMIZE" else "minimize"
    return StudyRow(id=rows[0].study_id, name=name, direction=direction, token=rows[0].token)


_LOCK = select(optuna.studies.c.study_id).where(optuna.studies.c.study_id == bindparam("study")).with_for_update()
"""Optuna locks the same row to number its trials."""


def lock_study(connection: Connection, study_id: int) -> bool:
    """Let no other process add a trial until the transaction ends; False when there is no such study any more."""
    return connection.execute(_LOCK, {"study": study_id}).first() is not None


def study_names(connection: Connection) -> tuple[str, ...]:
    """Name all studies, in order of creation."""
    names = connection.scalars(select(optuna.studies.c.study_name).order_by(optuna.studies.c.study_id))
    return tuple(names)


def read_specification(connection: Connection, study_id: int) -> dict[str, Any]:
    """Read what the study searches; empty for one that plain Optuna made."""
    query = select(automl_studies.c.specification).where(automl_studies.c.study_id == study_id)
    text = connection.scalar(query)
    return cast(dict[str, Any], from_json(text)) if text is not None else {}


def write_specification(connection: Connection, study: StudyRow, specification: Mapping[str, Any]) -> None:
    """Replace the specification."""
    text = to_json(dict(specification), f"the specification of study {study.name!r}")
    ensure_own_row(connection, study.id)
    own = automl_studies.c
    connection.execute(update(automl_studies).where(own.study_id == study.id).values(specification=text))


def read_study_attributes(connection: Connection, study_id: int) -> dict[str, Any]:
    """Read the facts stored on the study."""
    table = optuna.study_user_attributes
    rows = connection.execute(select(table.c.key, table.c.value_json).where(table.c.study_id == study_id))
    return {row.key: from_json(row.value_json) for row in rows}


def write_study_attribute(connection: Connection, study_id: int, key: str, text: str) -> None:
    """Set one fact."""
    row = {"study_id": study_id, "key": key, "value_json": text}
    upsert(connection, optuna.study_user_attributes, ["study_id", "key"], [row])


def delete_study_rows(connection: Connection, study_id: int) -> None:
    """Delete a study and everything that belongs to it, children first."""
    lock_study(connection, study_id)
    trials = select(optuna.trials.c.trial_id).where(optuna.trials.c.study_id == study_id)
    for table in (
        automl_checkpoints,
        automl_reports,
        automl_trials,
        optuna.trial_params,
        optuna.trial_values,
        optuna.intermediate_values,
        optuna.trial_user_attributes,
        optuna.trial_system_attributes,
        optuna.trial_heartbeats,
    ):
        connection.execute(delete(table).where(table.c.trial_id.in_(trials)))
    for table in (
        automl_spaces,
        automl_studies,
        optuna.trials,
        optuna.study_user_attributes,
        optuna.study_system_attributes,
        optuna.study_directions,
        optuna.studies,
    ):
        connection.execute(delete(table).where(table.c.study_id == study_id))
