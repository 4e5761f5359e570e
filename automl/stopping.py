"""When a search has had enough: pure questions about the study and the clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from automl.objective import to_loss
from studies.trial import Trial, TrialState
from trainers.config import Direction

__all__ = ["StoppingRule", "failures_in_a_row"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """The limits of a search besides its number of trials.

    Attributes:
        direction: whether larger or smaller objectives are better.
        timeout_s: seconds of this run; None: no limit.
        target_value: the objective that is good enough; None: no such thing.
    """

    direction: Direction
    timeout_s: float | None = None
    target_value: float | None = None

    def reason(self, best: Trial | None, elapsed_s: float) -> str | None:
        """Why to start nothing new and pause what runs, in words; None: go on.

        Args:
            best: the best complete trial; None before the first.
            elapsed_s: how long this run has taken.
        """
        if self.timeout_s is not None and elapsed_s >= self.timeout_s:
            return f"timeout of {self.timeout_s:g} s reached"
        if best is not None and best.value is not None and self._is_enough(best.value):
            return f"target value {self.target_value:g} reached by trial {best.number} ({best.value:g})"
        return None

    def _is_enough(self, value: float) -> bool:
        if self.target_value is None:
            return False
        return to_loss(value, self.direction) <= to_loss(self.target_value, self.direction)


def failures_in_a_row(trials: Sequence[Trial]) -> int:
    """How many of the trials that ended last have FAILED, without one that did not."""
    ended = [t for t in trials if t.state in (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAILED)]
    ended.sort(key=lambda trial: (trial.ended_at is not None and trial.ended_at.timestamp(), trial.number))
    return sum(1 for _ in takewhile(lambda trial: trial.state is TrialState.FAILED, reversed(ended)))
