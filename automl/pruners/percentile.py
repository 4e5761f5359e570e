"""Who is worse than a share of the others at the same epoch, ends.

Source: the rule of Golovin et al. 2017, "Google Vizier: A Service for Black-Box Optimization", KDD, section 3.2.2, with
any percentile in the median's place, as in Optuna. The best value so far of a trial is compared with the reports of
others at that epoch.
"""

import math
from collections.abc import Mapping, Sequence

from automl.objective import losses_at, to_loss
from automl.pruners.base import Pruner
from automl.standings import Entry, Standings
from studies.trial import Trial, TrialState
from trainers.config import Direction
from trainers.reporting import Decision

__all__ = ["PercentilePruner"]


class PercentilePruner(Pruner):
    """Stops a trial whose best value so far is not within the best `percentile` of ended trials at its epoch."""

    def __init__(
        self,
        direction: Direction,
        epochs: int,
        *,
        percentile: float = 25.0,
        startup_trials: int = 5,
        warmup_epochs: int = 1,
        interval_epochs: int = 1,
    ) -> None:
        """Set the method's parameters.

        Args:
            direction: whether larger or smaller objectives are better.
            epochs: the epochs of a full training.
            percentile: how many in a hundred of the ended trials are good enough, within (0, 100).
            startup_trials: COMPLETE or PRUNED trials before anything is stopped, at least 1.
            warmup_epochs: epochs at the start of each trial in which it is not judged, at least 0.
            interval_epochs: epochs from one judgement of a trial to the next, at least 1.

        Raises:
            ValueError: a parameter is out of its range; all mistakes are named.
        """
        super().__init__(direction, epochs)
        wrong = [f"percentile={percentile} is outside (0, 100)"] * (not 0.0 < percentile < 100.0)
        wrong += [f"startup_trials={startup_trials} must be at least 1"] * (startup_trials < 1)
        wrong += [f"warmup_epochs={warmup_epochs} must be at least 0"] * (warmup_epochs < 0)
        wrong += [f"interval_epochs={interval_epochs} must be at least 1"] * (interval_epochs < 1)
        if wrong:
            raise ValueError("; ".join(wrong))
        self.percentile = percentile
        self.startup_trials = startup_trials
        self.warmup_epochs = warmup_epochs
        self.interval_epochs = interval_epochs
        self._standings = Standings(self._losses)

    def decide(self, trial: Trial, trials: Sequence[Trial]) -> Decision:
        """Compare the trial with the others at its newest epoch."""
        epoch = trial.last_epoch
        if epoch <= self.warmup_epochs or epoch >= self.epochs:
            return Decision.CONTINUE
        if (epoch - self.warmup_epochs - 1) % self.interval_epochs:
            return Decision.CONTINUE
        self._standings.look(trials)
        losses = self._standings.at(epoch)
        if self._standings.count < self.startup_trials or not losses:
            return Decision.CONTINUE
        best = min(to_loss(value, self.direction) for value in trial.reports.values())
        return Decision.STOP if best > _quantile(losses, self.percentile / 100.0) else Decision.CONTINUE

    def _losses(self, trial: Trial) -> Mapping[int, float] | None:
        """What ended; an imported result has a value, and no curve to compare with."""
        if trial.state not in (TrialState.COMPLETE, TrialState.PRUNED) or trial.is_imported:
            return None
        return losses_at(trial.reports, trial, self.direction)


def _quantile(entries: Sequence[Entry], share: float) -> float:
    """The loss below which a share of them is, linear between two of them."""
    place = share * (len(entries) - 1)
    below, above = entries[math.floor(place)][0], entries[math.ceil(place)][0]
    return below if below == above else below + (above - below) * (place - math.floor(place))
