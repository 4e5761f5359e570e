"""The forms that a study's search space has had. Each function runs in the caller's transaction."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from studies.json_text import from_json, to_json
from studies.schema.tables import automl_spaces, automl_studies

__all__ = ["add_space_version", "space_versions"]


def space_versions(connection: Connection, study_id: int) -> tuple[dict[str, Any], ...]:
    """Read every form of the space, the oldest first."""
    table = automl_spaces.c
    texts = connection.scalars(select(table.space).where(table.study_id == study_id).order_by(table.version))
    return tuple(from_json(text) for text in texts)


def add_space_version(connection: Connection, study_id: int, description: Mapping[str, Any]) -> int:
    """Store a new form of the space, unless it is the latest one already; the number of the version, from 1."""
    text = to_json(dict(description), "the search space")
    connection.execute(select(automl_studies.c.study_id).where(automl_studies.c.study_id == study_id).with_for_update())
    versions = space_versions(connection, study_id)
    if versions and versions[-1] == from_json(text):
        return len(versions)
    row = {"study_id": study_id, "version": len(versions) + 1, "space": text}
    connection.execute(automl_spaces.insert(), row)
    return len(versions) + 1
