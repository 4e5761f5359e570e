"""Who has not become better for some epochs, ends; each trial is judged by itself.

Source: Prechelt 1998, "Early Stopping - But When?", the criterion of the last improvements.
"""

from collections.abc import Sequence

from automl.objective import to_loss
from automl.pruners.base import Pruner
from studies.trial import Trial
from trainers.config import Direction
from trainers.reporting import Decision

__all__ = ["PatiencePruner"]


class PatiencePruner(Pruner):
    """Stops a trial whose best value is older than `patience` epochs."""

    def __init__(self, direction: Direction, epochs: int, *, patience: int = 5, min_change: float = 0.0) -> None:
        """Set the method's parameters.

        Args:
            direction: whether larger or smaller objectives are better.
            epochs: the epochs of a full training.
            patience: epochs that may pass without a better value, at least 1.
            min_change: how much better a value must be to count, at least 0.

        Raises:
            ValueError: a parameter is out of its range; all mistakes are named.
        """
        super().__init__(direction, epochs)
        wrong = [f"patience={patience} must be at least 1"] * (patience < 1)
        wrong += [f"min_change={min_change} must be at least 0"] * (not min_change >= 0.0)
        if wrong:
            raise ValueError("; ".join(wrong))
        self.patience = patience
        self.min_change = min_change

    def decide(self, trial: Trial, trials: Sequence[Trial]) -> Decision:
        """Look for the last epoch that was better than all before it."""
        improved, best = 0, float("inf")
        for epoch, value in sorted(trial.reports.items()):
            loss = to_loss(value, self.direction)
            if loss < best - self.min_change:
                improved, best = epoch, loss
        return Decision.STOP if trial.last_epoch - improved >= self.patience else Decision.CONTINUE
