"""Results that were measured elsewhere: the complete trials of another study, or the rows of a file."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from automl.configuration_text import Row, Table, is_table, read_table, values_in
from automl.errors import InvalidSpecError
from automl.lookup import find_study
from search_spaces.ranges import is_number
from search_spaces.versions import SpaceHistory
from studies.study import Study
from studies.trial import TrialState

__all__ = ["VALUE_COLUMN", "Result", "Source", "from_file", "from_study", "source_named"]

VALUE_COLUMN = "value"
"""Where the objective stands in a file, unless a person says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A configuration with its objective, as it was found elsewhere.

    Attributes:
        place: where it stands in its source, such as `trial 3` or `line 4`.
        configuration: name -> value, of whatever space.
        value: the objective, finite.
    """

    place: str
    configuration: Mapping[str, Any]
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where results come from.

    Attributes:
        name: `study NAME` or `file NAME`; what comes from one name is known again by it.
        direction: whether larger or smaller objectives are better there; None: nobody knows.
        results: those with a finite objective.
        without_value: how many trials have none: they failed, were pruned or have not ended.
    """

    name: str
    direction: str | None
    results: tuple[Result, ...]
    without_value: int


def source_named(reference: str, storage: str | None, history: SpaceHistory) -> Source:
    """The source that a person names in one word: a .csv or .json file, otherwise a study.

    Raises:
        InvalidSpecError: the file cannot be read.
        StudyNotFoundError: there is no such study.
    """
    if is_table(reference):
        return from_file(Path(reference), VALUE_COLUMN, history)
    return from_study(find_study(reference, storage).study)


def from_study(study: Study) -> Source:
    """The complete trials of a study, also of plain Optuna; what it imported itself is left where it was measured."""
    own = [trial for trial in study.trials() if not trial.is_imported]
    results = tuple(
        Result(place=f"trial {trial.number}", configuration=trial.configuration, value=trial.value)
        for trial in own
        if trial.state is TrialState.COMPLETE and trial.value is not None and math.isfinite(trial.value)
    )
    return Source(
        name=f"study {study.name}",
        direction=study.direction,
        results=results,
        without_value=len(own) - len(results),
    )


def from_file(path: Path, value_column: str, history: SpaceHistory) -> Source:
    """The rows of a table that have an objective and are not said to be unfinished.

    Args:
        path: as `read_table` takes it.
        value_column: name of the column, or of the JSON key, with the objective.
        history: its present space tells how text is read.

    Raises:
        InvalidSpecError: the file cannot be read, or has no such column.
    """
    table = read_table(path)
    _check_has(table, value_column, path)
    results = []
    for row in table.rows:
        value = _objective(row, value_column)
        if value is not None:
            configuration = values_in(row, history.present)
            if row.facts is row.parameters:
                configuration.pop(value_column)  # a column like the others, as nothing tells them apart
            results.append(Result(place=row.place, configuration=configuration, value=value))
    return Source(
        name=f"file {path.name}",
        direction=table.direction,
        results=tuple(results),
        without_value=len(table.rows) - len(results),
    )


def _objective(row: Row, column: str) -> float | None:
    """The row's objective; None when it has none, or is said not to be complete, or to be imported itself."""
    if row.facts is not row.parameters:
        state = row.facts.get("state", TrialState.COMPLETE.value)
        if str(state).lower() != TrialState.COMPLETE.value or str(row.facts.get("imported")).lower() == "true":
            return None
    value = row.facts.get(column)
    if row.is_text:
        try:
            value = float(str(value))
        except ValueError:
            return None
    return float(value) if is_number(value) else None


def _check_has(table: Table, column: str, path: Path) -> None:
    columns = dict.fromkeys(name for row in table.rows for name in row.facts)
    if column in columns:
        return
    given = f"no column {column!r} with the objective; columns: {', '.join(columns) or 'none'}; name it by --value"
    raise InvalidSpecError([given if table.rows else "there are no rows"], str(path))
