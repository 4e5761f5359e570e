"""What a study's snapshot shows at one moment; others may look and write meanwhile."""

from dataclasses import dataclass

from studies.attempts import is_free
from studies.standing import Standing
from studies.trial import Trial, TrialState

__all__ = ["Picture"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A study's trials at one moment.

    Attributes:
        trials: all trials, in order of their numbers.
        unfinished: those that may still change, each with the seconds that were left of its lease (None: without one).
        claimed: how many trials hold a place in the budget.
        standing: how the study stands; None when it was deleted.
    """

    trials: tuple[Trial, ...]
    unfinished: tuple[tuple[Trial, float | None], ...]
    claimed: int
    standing: Standing | None

    @property
    def claimable(self) -> tuple[Trial, ...]:
        """The trials that nobody works on: PAUSED ones, and RUNNING ones whose owner is gone by now."""
        return tuple(trial for trial, expires_in_s in self.unfinished if _is_claimable(trial, expires_in_s))


def _is_claimable(trial: Trial, expires_in_s: float | None) -> bool:
    if trial.state is TrialState.RUNNING:
        return is_free(trial.owner, expires_in_s)
    return trial.state is TrialState.PAUSED
