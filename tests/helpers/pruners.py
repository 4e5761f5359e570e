"""Pruners for tests."""

from collections.abc import Sequence

from automl.pruners.asha_promote import AshaPromotePruner
from automl.pruners.base import Pruner
from studies.trial import Trial
from trainers.config import Direction
from trainers.reporting import Decision

__all__ = ["Halving", "PauseAtTwo", "StopAtOnce"]


class StopAtOnce(Pruner):
    """Stops every trial at its first report."""

    def decide(self, trial: Trial, trials: Sequence[Trial]) -> Decision:
        return Decision.STOP


class PauseAtTwo(Pruner):
    """Pauses every trial once, after its second epoch."""

    def decide(self, trial: Trial, trials: Sequence[Trial]) -> Decision:
        return Decision.PAUSE if trial.last_epoch == 2 and trial.attempt == 1 else Decision.CONTINUE


class Halving(AshaPromotePruner):
    """Promotes one of two, from the first epoch on."""

    def __init__(self, direction: Direction, epochs: int) -> None:
        super().__init__(direction, epochs, min_epochs=1, eta=2)
