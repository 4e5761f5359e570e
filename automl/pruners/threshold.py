"""Values that no good training has: who reports one, ends. Nothing is learned from other trials."""

from collections.abc import Sequence

from automl.pruners.base import Pruner
from studies.trial import Trial
from trainers.config import Direction
from trainers.reporting import Decision

__all__ = ["ThresholdPruner"]


class ThresholdPruner(Pruner):
    """Stops a trial whose newest value is outside the bounds, such as an accuracy below chance."""

    def __init__(
        self,
        direction: Direction,
        epochs: int,
        *,
        lower: float | None = None,
        upper: float | None = None,
        warmup_epochs: int = 0,
    ) -> None:
        """Set the bounds.

        Args:
            direction: whether larger or smaller objectives are better; the bounds mean what they say in either case.
            epochs: the epochs of a full training.
            lower: the smallest value that may be reported; None: any.
            upper: the largest value that may be reported; None: any.
            warmup_epochs: epochs at the start of each trial in which it is not judged, at least 0.

        Raises:
            ValueError: there is no bound, nothing is between them, or `warmup_epochs` is below 0; all are named.
        """
        super().__init__(direction, epochs)
        wrong = ["give the option lower, upper, or both"] * (lower is None and upper is None)
        if lower is not None and upper is not None and not lower < upper:
            wrong.append(f"lower={lower} is not below upper={upper}")
        wrong += [f"warmup_epochs={warmup_epochs} must be at least 0"] * (warmup_epochs < 0)
        if wrong:
            raise ValueError("; ".join(wrong))
        self.lower = lower
        self.upper = upper
        self.warmup_epochs = warmup_epochs

    def decide(self, trial: Trial, trials: Sequence[Trial]) -> Decision:
        """Compare the newest value with the bounds; what is no number is outside."""
        epoch = trial.last_epoch
        if epoch <= self.warmup_epochs or epoch not in trial.reports:
            return Decision.CONTINUE
        value = trial.reports[epoch]
        is_within = (self.lower is None or value >= self.lower) and (self.upper is None or value <= self.upper)
        return Decision.CONTINUE if is_within and value == value else Decision.STOP
