"""What happens in a search, as values: the progress view and the log are told nothing else."""

from dataclasses import dataclass
from typing import Self, TypeAlias

from studies.trial import Trial, TrialState

__all__ = ["EpochReported", "Event", "NewBest", "SlotsChanged", "TrialEnded", "TrialRefused", "TrialStarted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialStarted:
    """A trial begins, or goes on after `epoch` epochs in a later attempt."""

    number: int
    attempt: int
    epoch: int
    epochs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochReported:
    """A running trial has finished an epoch; `value` is its objective."""

    number: int
    epoch: int
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEnded:
    """A trial has left its worker: COMPLETE, PRUNED, FAILED, or PAUSED and to be continued.

    Attributes:
        value: the trial's value when COMPLETE, otherwise its last report; None when it never reported.
        cause: one word, for FAILED.
        message: the error's text, for FAILED.
    """

    number: int
    state: TrialState
    epoch: int
    value: float | None
    cause: str | None = None
    message: str = ""

    @classmethod
    def of(
        cls, trial: Trial, state: TrialState, *, value: float | None = None, cause: str | None = None, message: str = ""
    ) -> Self:
        """The end of a trial as it stands; without a value of its own its last report is shown."""
        return cls(
            number=trial.number,
            state=state,
            epoch=trial.last_epoch,
            value=value if value is not None else trial.reports.get(trial.last_epoch),
            cause=cause,
            message=message,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRefused:
    """A proposal was INFEASIBLE and is not trained."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBest:
    """A complete trial beats all before it; `epoch` is the one that its checkpoint is from."""

    number: int
    value: float
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsChanged:
    """Machines have come or gone: so many trials of this process train at the same time from now on."""

    slots: int


Event: TypeAlias = TrialStarted | EpochReported | TrialEnded | TrialRefused | NewBest | SlotsChanged
