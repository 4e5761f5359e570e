"""The median stopping rule: who is worse than the median of the others at the same epoch, ends.

Source: Golovin et al. 2017, "Google Vizier: A Service for Black-Box Optimization", KDD, section 3.2.2. The best value
so far of a trial is compared with the median of the others' reports at that epoch, as Optuna does.
"""

from collections.abc import Sequence
from statistics import median

from automl.objective import to_loss
from automl.pruners.base import Pruner
from studies.trial import Trial, TrialState
from trainers.config import Direction
from trainers.reporting import Decision

__all__ = ["MedianPruner"]


class MedianPruner(Pruner):
    """Stops a trial whose best value so far is worse than the median of ended trials at its epoch."""

    def __init__(self, direction: Direction, epochs: int, *, startup_trials: int = 5, warmup_epochs: int = 1) -> None:
        """Set the method's parameters.

        Args:
            direction: whether larger or smaller objectives are better.
            epochs: the epochs of a full training.
            startup_trials: COMPLETE or PRUNED trials before anything is stopped, at least 1.
            warmup_epochs: epochs at the start of each trial in which it is not judged, at least 0.

        Raises:
            ValueError: a parameter is out of its range.
        """
        super().__init__(direction, epochs)
        if startup_trials < 1:
            raise ValueError(f"startup_trials={startup_trials} must be at least 1")
        if warmup_epochs < 0:
            raise ValueError(f"warmup_epochs={warmup_epochs} must be at least 0")
        self.startup_trials = startup_trials
        self.warmup_epochs = warmup_epochs

    def decide(self, trial: Trial, trials: Sequence[Trial]) -> Decision:
        """Compare the trial with the others at its newest epoch."""
        epoch = trial.last_epoch
        if epoch <= self.warmup_epochs or epoch >= self.epochs:
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
        return Decision.STOP if best > median(losses) else Decision.CONTINUE
