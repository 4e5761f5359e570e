"""Asynchronous successive halving with promotion: every trial rests at a rung, and the best of those there go on.

Source: Li et al. 2020, "A System for Massively Parallel Hyperparameter Tuning", MLSys (arXiv 1810.05934), algorithm 2.
Deviations: a trial that would be promoted at once is not put to rest before; when nothing new will be started, the best
trial of each rung goes on in any case, so that a short search has a result, too.
"""

from collections.abc import Sequence
from itertools import islice
from typing import ClassVar

from automl.objective import to_loss
from automl.pruners.base import Pruner
from automl.pruners.rungs import rung_epochs, usual_first_rung
from studies.trial import Trial, TrialState
from trainers.config import Direction
from trainers.reporting import Decision

__all__ = ["AshaPromotePruner"]


class AshaPromotePruner(Pruner):
    """Pauses trials at rungs, and promotes the best 1/eta of those that came there, from their checkpoints.

    Nobody is stopped for good before the search ends: who was poor among many may be good enough among more.
    """

    pauses: ClassVar[bool] = True

    def __init__(self, direction: Direction, epochs: int, *, min_epochs: int | None = None, eta: int = 3) -> None:
        """Set the method's parameters.

        Args:
            direction: whether larger or smaller objectives are better.
            epochs: the epochs of a full training.
            min_epochs: the first rung, at least 1; None: a fifth of `epochs`.
            eta: the reduction factor, at least 2; one of eta trials passes a rung.

        Raises:
            ValueError: a parameter is out of its range.
        """
        super().__init__(direction, epochs)
        self.rungs = rung_epochs(usual_first_rung(epochs) if min_epochs is None else min_epochs, epochs, eta)
        self.eta = eta

    def decide(self, trial: Trial, trials: Sequence[Trial]) -> Decision:
        """Pause the trial at a rung, unless it would be the next to be promoted."""
        if not self.rests(trial):
            return Decision.CONTINUE
        shown = [other for other in trials if other.number != trial.number] + [trial]
        resting = [other for other in shown if other.state is TrialState.PAUSED and self.rests(other)] + [trial]
        return Decision.CONTINUE if self.promoted(shown, resting) is trial else Decision.PAUSE

    def rests(self, trial: Trial) -> bool:
        """Whether the trial stands at a rung; one that was lost right there is judged anew."""
        return trial.last_epoch in self.rungs

    def promoted(self, trials: Sequence[Trial], resting: Sequence[Trial], *, is_last: bool = False) -> Trial | None:
        """The best trial at the highest rung where one is among the best 1/eta of all that came there."""
        waiting = {trial.id: trial for trial in resting}
        for rung in reversed(self.rungs):
            ranked = self._ranked(trials, rung)
            passing = max(len(ranked) // self.eta, int(is_last))
            for _, _, key in islice(ranked, passing):
                if key in waiting and waiting[key].last_epoch == rung:
                    return waiting[key]
        return None

    def _ranked(self, trials: Sequence[Trial], rung: int) -> list[tuple[float, int, int]]:
        """Loss, number and key of all that came to a rung and did not fail, the best first."""
        return sorted(
            (to_loss(trial.reports[rung], self.direction), trial.number, trial.id)
            for trial in trials
            if rung in trial.reports and trial.state is not TrialState.FAILED
        )
