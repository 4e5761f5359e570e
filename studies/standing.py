"""The rules that end a whole study, and how far it is: the same for every process that works on it.

Each function runs in the caller's transaction. All times are the database's clock.
"""

import math
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, case, select, update

from studies.schema.clock import epoch_now
from studies.schema.optuna_tables import studies
from studies.schema.tables import automl_studies

__all__ = [
    "STANDING_COLUMNS",
    "Limits",
    "Standing",
    "count_time",
    "read_standing",
    "request_stop",
    "standing_of",
    "write_limits",
]

REST_S = 90.0
"""A longer time without a sign of life is a rest, in which nobody searched."""


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
_COUNTED = automl_studies.c.searched_s + case((_SINCE_LAST_SIGN.between(0.0, REST_S), _SINCE_LAST_SIGN), else_=0.0)
"""The searched time up to now."""

STANDING_COLUMNS = (
    automl_studies.c.max_trials,
    automl_studies.c.timeout_s,
    automl_studies.c.target_value,
    _COUNTED.label("counted_s"),
    automl_studies.c.stopped_at,
    epoch_now().label("now"),
)
"""What `standing_of` reads; all but `now` are null for a study that plain Optuna made."""
_READ = (
    select(*STANDING_COLUMNS)
    .select_from(studies.outerjoin(automl_studies, automl_studies.c.study_id == studies.c.study_id))
    .where(studies.c.study_id == bindparam("study"))
)
_COUNT = update(automl_studies).where(_STUDY).values(searched_s=_COUNTED, searched_until=epoch_now())
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


def count_time(connection: Connection, study_id: int) -> None:
    """Say that somebody works on the study; the time since the last sign of life counts, unless it was a rest."""
    connection.execute(_COUNT, {"study": study_id})


def request_stop(connection: Connection, study_id: int) -> None:
    """Ask every process that searches now to end; runs that are begun later are not meant."""
    connection.execute(_STOP, {"study": study_id})


def write_limits(connection: Connection, study_id: int, limits: Limits) -> None:
    """Replace the limits."""
    values = {"max_trials": limits.trials, "timeout_s": limits.timeout_s, "target_value": limits.target_value}
    connection.execute(update(automl_studies).where(automl_studies.c.study_id == study_id).values(values))
