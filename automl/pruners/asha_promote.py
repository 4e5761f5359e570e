"""Asynchronous successive halving with promotion: every trial rests at a rung, and the best of those there go on.

Source: Li et al. 2020, "A System for Massively Parallel Hyperparameter Tuning", MLSys (arXiv 1810.05934), algorithm 2.
Deviations: a trial that would be promoted at once is not put to rest before; when nothing new will be started, the best
trial of each rung goes on in any case, so that a short search has a result, too.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from automl.objective import losses_at, to_loss
from automl.pruners.base import Pruner
from automl.pruners.rungs import rung_epochs, usual_first_rung
from automl.standings import Entry, Standings
from studies.trial import Trial, TrialState
from trainers.config import Direction
from trainers.reporting import Decision

__all__ = ["AshaPromotePruner"]

_REST = "at rest"


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
        self._standings = Standings(self._losses)

    def decide(self, trial: Trial, trials: Sequence[Trial]) -> Decision:
        """Pause the trial at a rung, unless it would be the next to be promoted."""
        if not self.rests(trial):
            return Decision.CONTINUE
        self._standings.look(trials)
        goes_on = self._is_open(trial.last_epoch) and self._is_passing(trial) and self._is_first(trial)
        return Decision.CONTINUE if goes_on else Decision.PAUSE

    def rests(self, trial: Trial) -> bool:
        """Whether the trial stands at a rung; one that was lost right there is judged anew."""
        return trial.last_epoch in self.rungs

    def promoted(self, trials: Sequence[Trial], resting: Sequence[Trial], *, is_last: bool = False) -> Trial | None:
        """The best trial at the highest rung where one is among the best 1/eta of all that came there."""
        self._standings.look(trials)
        for rung in reversed(self.rungs):
            if not (is_last or self._is_open(rung)):
                continue
            there = [trial for trial in resting if trial.last_epoch == rung]
            best = min(there, key=partial(self._entry, rung), default=None)
            passing = max(len(self._standings.at(rung)) // self.eta, int(is_last))
            if best is not None and self._standings.place(rung, self._entry(rung, best)) < passing:
                return best
        return None

    def _is_open(self, rung: int) -> bool:
        """Whether trials go on from a rung at present."""
        return True

    def _is_passing(self, trial: Trial) -> bool:
        """Whether it is among the best of its rung."""
        loss = to_loss(trial.reports[trial.last_epoch], self.direction)
        others, better = self._standings.others_at(trial.last_epoch, trial, loss, by_age=True)
        return better < (others + 1) // self.eta

    def _is_first(self, trial: Trial) -> bool:
        """Whether nobody who rests would be promoted before it."""
        rung = trial.last_epoch
        for higher in self.rungs[self.rungs.index(rung) + 1 :]:
            waiting, passing = self._standings.at((_REST, higher)), len(self._standings.at(higher)) // self.eta
            if waiting and self._is_open(higher) and self._standings.place(higher, waiting[0]) < passing:
                return False
        loss = to_loss(trial.reports[rung], self.direction)
        return self._standings.others_at((_REST, rung), trial, loss, by_age=True)[1] == 0

    def _entry(self, rung: int, trial: Trial) -> Entry:
        return to_loss(trial.reports[rung], self.direction), trial.number, trial.id

    def _losses(self, trial: Trial) -> Mapping[Any, float] | None:
        """The losses at the rungs, and where the trial rests; one that failed takes nobody's place."""
        if trial.state is TrialState.FAILED:
            return None
        losses: dict[Any, float] = {**losses_at(self.rungs, trial, self.direction)}
        if trial.state is TrialState.PAUSED and self.rests(trial):
            losses[_REST, trial.last_epoch] = losses[trial.last_epoch]
        return losses
