"""Asynchronous successive halving in its stopping form: who is not among the best at a rung, ends.

Source: Li et al. 2020, "A System for Massively Parallel Hyperparameter Tuning", MLSys (arXiv 1810.05934); the stopping
variant is described in Klein et al. 2020 (arXiv 2003.10865), section 3.1. Deviation: a rung judges from its
`min_trials`-th trial on, so that the first trials of a study, which have nobody to be compared with, are not all kept
while the next ones are judged against two or three values.
"""

from collections.abc import Mapping, Sequence

from automl.objective import losses_at, to_loss
from automl.pruners.base import Pruner
from automl.pruners.rungs import passes, rung_epochs, usual_first_rung
from automl.standings import Standings
from studies.trial import Trial
from trainers.config import Direction
from trainers.reporting import Decision

__all__ = ["AshaPruner"]


class AshaPruner(Pruner):
    """Stops a trial at a rung unless it is among the best 1/eta of all trials that came so far."""

    def __init__(
        self,
        direction: Direction,
        epochs: int,
        *,
        min_epochs: int | None = None,
        eta: int = 3,
        min_trials: int = 3,
    ) -> None:
        """Set the method's parameters.

        Args:
            direction: whether larger or smaller objectives are better.
            epochs: the epochs of a full training.
            min_epochs: the first rung, at least 1; None: a fifth of `epochs`, since the first epochs are those of
                the warm-up, and favour high learning rates.
            eta: the reduction factor, at least 2; one of eta trials passes a rung.
            min_trials: trials that a rung has seen before it judges, at least 1.

        Raises:
            ValueError: a parameter is out of its range.
        """
        super().__init__(direction, epochs)
        if min_trials < 1:
            raise ValueError(f"min_trials={min_trials} must be at least 1")
        self.rungs = rung_epochs(usual_first_rung(epochs) if min_epochs is None else min_epochs, epochs, eta)
        self.eta = eta
        self.min_trials = min_trials
        self._standings = Standings(self.losses)

    def decide(self, trial: Trial, trials: Sequence[Trial]) -> Decision:
        """Judge the trial when its newest epoch is a rung."""
        rung = trial.last_epoch
        if rung not in self.rungs:
            return Decision.CONTINUE
        self._standings.look(trials)
        loss = to_loss(trial.reports[rung], self.direction)
        others, better = self._standings.others_at(rung, trial, loss)
        if others + 1 < self.min_trials or passes(better, others, self.eta):
            return Decision.CONTINUE
        return Decision.STOP

    def losses(self, trial: Trial) -> Mapping[int, float] | None:
        """What of a trial counts: its losses at the rungs; None: it does not take part."""
        return losses_at(self.rungs, trial, self.direction)
