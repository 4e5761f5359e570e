"""Who is worse than a share of the others at the same epoch, ends.

Source: the rule of Golovin et al. 2017, "Google Vizier: A Service for Black-Box Optimization", KDD, section 3.2.2, with
any percentile in the median's place, as in Optuna. The best value so far of a trial is compared with the reports of
others at that epoch.
"""

from collections.abc import Sequence

import numpy as np

from automl.objective import to_loss
from automl.pruners.base import Pruner
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

    def decide(self, trial: Trial, trials: Sequence[Trial]) -> Decision:
        """Compare the trial with the others at its newest epoch."""
        epoch = trial.last_epoch
        if epoch <= self.warmup_epochs or epoch >= self.epochs:
            return Decision.CONTINUE
        if (epoch - self.warmup_epochs - 1) % self.interval_epochs:
            return Decision.CONTINUE
        ended = [
            other
            for other in trials
            if other.state in (TrialState.COMPLETE, TrialState.PRUNED)
            and not other.is_imported  # it has a value, and no curve to compare with
            and other.number != trial.number
        ]
        losses = [to_loss(other.reports[epoch], self.direction) for other in ended if epoch in other.reports]
        if len(ended) < self.startup_trials or not losses:
            return Decision.CONTINUE
        best = min(to_loss(value, self.direction) for value in trial.reports.values())
        with np.errstate(invalid="ignore"):  # between two infinities
            limit = float(np.percentile(losses, self.percentile))
        return Decision.STOP if best > limit else Decision.CONTINUE
