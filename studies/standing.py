"""The rules that end a whole study, and how far it is: the same for every process that works on it.

Each function runs in the caller's transaction. All times are the database's clock.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, case, null, select, update

from studies.schema.clock import epoch_now
from studies.schema.optuna_tables import studies
from studies.schema.tables import automl_studies

__all__ = [
    "STANDING_COLUMNS",
    "Limits",
    "Standing",
    "count_time",
    "raise_trials",
    "read_standing",
    "request_stop",
    "standing_of",
    "write_limits",
]

REST_S = 90.0
"""A longer time without a sign of life is a rest, in which nobody searched."""
SIGN_S = 30.0
"""Two signs of life are not further apart, so that after a longer time it is not known yet whether anybody searches."""


_COLUMNS = {"trials": "max_trials", "timeout_s": "timeout_s", "target_value": "target_value"}
LIMIT_NAMES = tuple(_COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When a study has had enough, over all its processes and runs; None: no such limit.

    Attributes:
        trials: places in the budget, at least 1: trials that may be started in all.
        timeout_s: seconds in which at least one process searched, above 0; rests do not count.
        target_value: the objective that is good enough, finite.
    """

    trials: int | None = None
    timeout_s: float | None = None
    target_value: float | None = None

    def __post_init__(self) -> None:
        """Check the ranges; all mistakes are listed.

        Raises:
            ValueError: a limit is outside of its range.
        """
        faults = []
        if self.trials is not None and self.trials < 1:
            faults.append(f"trials={self.trials} is less than 1")
        if self.timeout_s is not None and not (self.timeout_s > 0.0 and math.isfinite(self.timeout_s)):
            faults.append(f"timeout_s={self.timeout_s} is not a time above 0")
        if self.target_value is not None and not math.isfinite(self.target_value):
            faults.append(f"target_value={self.target_value} is not a finite number")
        if faults:
            raise ValueError(f"the limits of a study: {'; '.join(faults)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a study stands at one moment.

    Attributes:
        limits: its rules now; any process may change them.
        searched_s: how long at least one process has worked on it, in seconds.
        stopped_at: when a person last asked for its end, in seconds since 1970; None: never.
        now: the moment itself, in seconds since 1970.
    """

    limits: Limits
    searched_s: float
    stopped_at: float | None
    now: float


_STUDY = automl_studies.c.study_id == bindparam("study")
_SINCE_LAST_SIGN = epoch_now() - automl_studies.c.searched_until


def _counted_up_to_now(longest_s: float) -> ColumnElement[float]:
    """The searched time, with that since the last sign of life unless it is longer."""
    is_counted = _SINCE_LAST_SIGN.between(0.0, longest_s)
    return automl_studies.c.searched_s + case((is_counted, _SINCE_LAST_SIGN), else_=0.0)


STANDING_COLUMNS = (
    automl_studies.c.max_trials,
    automl_studies.c.timeout_s,
    automl_studies.c.target_value,
    _counted_up_to_now(SIGN_S).label("counted_s"),
    automl_studies.c.stopped_at,
    epoch_now().label("now"),
)
"""What `standing_of` reads; all but `now` are null for a study that plain Optuna made."""
_READ = (
    select(*STANDING_COLUMNS)
    .select_from(studies.outerjoin(automl_studies, automl_studies.c.study_id == studies.c.study_id))
    .where(studies.c.study_id == bindparam("study"))
)
_COUNT = update(automl_studies).where(_STUDY).values(searched_s=_counted_up_to_now(REST_S))
_SIGN = _COUNT.values(searched_until=epoch_now())
_FAREWELL = _COUNT.values(searched_until=null())
_STOP = update(automl_studies).where(_STUDY).values(stopped_at=epoch_now())


def read_standing(connection: Connection, study_id: int) -> Standing:
    """Read how the study stands; a study that plain Optuna made has no limits."""
    return standing_of(connection.execute(_READ, {"study": study_id}).one())


def standing_of(row: Any) -> Standing:
    """Translate a row that has STANDING_COLUMNS."""
    return Standing(
        limits=Limits(trials=row.max_trials, timeout_s=row.timeout_s, target_value=row.target_value),
        searched_s=row.counted_s or 0.0,
        stopped_at=row.stopped_at,
        now=row.now,
    )


def count_time(connection: Connection, study_id: int, *, is_last: bool = False) -> None:
    """Say that somebody works on the study; the time since the last sign of life counts, unless it was a rest.

    After the last sign of a process nothing is counted until another one gives a sign.
    """
    connection.execute(_FAREWELL if is_last else _SIGN, {"study": study_id})


def request_stop(connection: Connection, study_id: int) -> None:
    """Ask every process that searches now to end; runs that are begun later are not meant."""
    connection.execute(_STOP, {"study": study_id})


def write_limits(connection: Connection, study_id: int, limits: Limits, names: Collection[str] = LIMIT_NAMES) -> None:
    """Replace the limits of these names (those of `Limits`); the others stay."""
    values = {_COLUMNS[name]: getattr(limits, name) for name in names}
    connection.execute(update(automl_studies).where(automl_studies.c.study_id == study_id).values(values))


def raise_trials(connection: Connection, study_id: int, at_least: int) -> None:
    """Let the study have at least so many trials, where their number is limited."""
    own = automl_studies.c
    statement = update(automl_studies).where(own.study_id == study_id, own.max_trials < at_least)
    connection.execute(statement.values(max_trials=at_least))
