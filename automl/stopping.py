"""When a search has had enough: pure questions about the whole study, so that all its processes answer alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from automl.objective import to_loss
from studies.ranking import best_of
from studies.standing import Limits, Standing
from studies.trial import Trial, TrialState
from trainers.config import Direction

__all__ = ["Stop", "StoppingRule", "failures_in_a_row", "is_time_up", "winner"]

_RESULTS = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAILED)
TIME_IS_UP_GRACE_S = 5.0
"""How long running trials may take to reach the end of their epoch when the time of the study is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Nothing new is started, and running trials are paused at the end of their epoch.

    Attributes:
        reason: why, in words.
        grace_s: how long that may take, in seconds, before they are paused where they are; None: as long as it takes.
    """

    reason: str
    grace_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """The limits of a study besides its number of trials, and a person's wish.

    Attributes:
        direction: whether larger or smaller objectives are better.
        began_at: when this run began, by the database's clock; a wish from before is not meant for it.
    """

    direction: Direction
    began_at: float

    def stop(self, trials: Sequence[Trial], standing: Standing) -> Stop | None:
        """Why to end; None: go on."""
        limits = standing.limits
        if standing.stopped_at is not None and standing.stopped_at >= self.began_at:
            return Stop(reason="stopped by `automl stop`")
        if is_time_up(standing):
            return Stop(
                reason=f"timeout of {limits.timeout_s:g} s reached ({standing.searched_s:.0f} s searched in all)",
                grace_s=TIME_IS_UP_GRACE_S,
            )
        best = winner(trials, limits, self.direction)
        if best is None:
            return None
        return Stop(reason=f"target value {limits.target_value:g} reached by trial {best.number} ({best.value:g})")


def is_time_up(standing: Standing) -> bool:
    """Whether the study was searched as long as it may be."""
    timeout_s = standing.limits.timeout_s
    return timeout_s is not None and standing.searched_s >= timeout_s


def winner(trials: Sequence[Trial], limits: Limits, direction: Direction) -> Trial | None:
    """The best trial, where it has reached the target value; None: none has, or there is no target."""
    if limits.target_value is None:
        return None
    best = next(iter(best_of(trials, direction, 1)), None)
    if best is None or best.value is None:
        return None
    return best if to_loss(best.value, direction) <= to_loss(limits.target_value, direction) else None


def failures_in_a_row(trials: Sequence[Trial], since: float) -> int:
    """How many of the trials that ended last have FAILED, without one that did not.

    Args:
        trials: the whole study.
        since: seconds since 1970; what ended before says nothing of this run, as its reason may have been repaired.
    """
    ended = [
        (trial.ended_at.timestamp(), trial.number, trial.state)
        for trial in trials
        if trial.ended_at is not None and trial.state in _RESULTS
    ]
    states = [state for ended_at, _, state in sorted(ended, key=lambda one: one[:2]) if ended_at >= since]
    return sum(1 for _ in takewhile(lambda state: state is TrialState.FAILED, reversed(states)))
