"""Pruners for tests."""

from collections.abc import Sequence

from automl.pruners.base import Pruner
from studies.trial import Trial
from trainers.reporting import Decision

__all__ = ["PauseAtTwo", "StopAtOnce"]


class StopAtOnce(Pruner):
    """Stops every trial at its first report."""

    def decide(self, trial: Trial, trials: Sequence[Trial]) -> Decision:
        return Decision.STOP


class PauseAtTwo(Pruner):
    """Pauses every trial once, after its second epoch."""

    def decide(self, trial: Trial, trials: Sequence[Trial]) -> Decision:
        return Decision.PAUSE if trial.last_epoch == 2 and trial.attempt == 1 else Decision.CONTINUE
