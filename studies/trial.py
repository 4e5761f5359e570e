"""A trial as it stands in the study: a frozen copy that samplers, pruners and figures read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from search_spaces.configuration import JsonScalar as JsonScalar

__all__ = ["CheckpointRecord", "JsonScalar", "Lease", "Trial", "TrialState"]


class TrialState(Enum):
    """Where a trial stands; Optuna's own state, as stored for Optuna's tools, is in brackets."""

    QUEUED = "queued"
    """Enqueued by a person, never started (WAITING)."""
    RUNNING = "running"
    """Owned by a process through a lease (RUNNING)."""
    PAUSED = "paused"
    """Interrupted or paused; holds its place in the budget and goes on from its checkpoint (WAITING)."""
    COMPLETE = "complete"
    """Ended with a value (COMPLETE)."""
    PRUNED = "pruned"
    """Stopped early at its last reported epoch (PRUNED)."""
    FAILED = "failed"
    """Ended with a cause and no value (FAIL)."""
    INFEASIBLE = "infeasible"
    """Refused before training; does not count towards the budget (FAIL)."""

    @property
    def is_ended(self) -> bool:
        """Whether the trial will never run again."""
        return self not in (TrialState.QUEUED, TrialState.RUNNING, TrialState.PAUSED)

    @property
    def is_counted(self) -> bool:
        """Whether a trial in this state holds a place in the study's budget, unless it was imported."""
        return self not in (TrialState.QUEUED, TrialState.INFEASIBLE)

    def may_become(self, state: "TrialState") -> bool:
        """Whether a trial may go from this state to `state`; this is the one table of legal changes."""
        return state in _LEGAL_CHANGES.get(self, frozenset())


_LEGAL_CHANGES = {
    TrialState.QUEUED: frozenset({TrialState.RUNNING}),
    TrialState.RUNNING: frozenset(
        {
            TrialState.RUNNING,  # taken over from an owner that is gone
            TrialState.PAUSED,
            TrialState.COMPLETE,
            TrialState.PRUNED,
            TrialState.FAILED,
        }
    ),
    TrialState.PAUSED: frozenset({TrialState.RUNNING}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to write to a running trial.

    Attributes:
        trial_id: the trial's key in the database.
        number: the trial's number in its study, counted from 0.
        attempt: how many times the trial was started, this one included; a writer with an older number is refused.
        owner: who holds it; a database may give the key of a deleted trial out again.
    """

    trial_id: int
    number: int
    attempt: int
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRecord:
    """A row of the checkpoint ledger; `path` is POSIX and relative to the artifacts root."""

    path: str
    epoch: int
    attempt: int
    digest: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One trial, frozen.

    Attributes:
        id: key in the database, unique over its studies.
        number: position in the study, counted from 0.
        state: where it stands.
        configuration: parameter name -> value.
        reports: epoch -> objective, in order of the epochs, over all attempts.
        value: the objective of a COMPLETE trial; None for every other state.
        cause: why it FAILED or is INFEASIBLE, one word.
        attempt: how many times it was started.
        losses: how often its process or machine was lost while it ran.
        is_imported: whether it was trained elsewhere, and is here only to be learned from.
        owner: who holds the lease while it is RUNNING.
        started_at: when it was first started, UTC.
        ended_at: when it ended, UTC.
        attributes: facts stored on it (precision really used, number of parameters, error text, ...), plain JSON.
    """

    id: int
    number: int
    state: TrialState
    configuration: Mapping[str, JsonScalar]
    reports: Mapping[int, float] = field(default_factory=dict)
    value: float | None = None
    cause: str | None = None
    attempt: int = 0
    losses: int = 0
    is_imported: bool = False
    owner: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    attributes: Mapping[str, object] = field(default_factory=dict)

    @property
    def last_epoch(self) -> int:
        """The last epoch that was reported; 0 before the first report."""
        return max(self.reports, default=0)

    @property
    def is_counted(self) -> bool:
        """Whether the trial holds a place in the study's budget."""
        return self.state.is_counted and not self.is_imported

    @property
    def is_foreign(self) -> bool:
        """Whether a program that gives no sign of life runs it, such as plain Optuna: nobody can wait for its end."""
        return self.state is TrialState.RUNNING and self.owner is None
