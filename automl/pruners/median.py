"""The median stopping rule: who is worse than the median of the others at the same epoch, ends.

Source: Golovin et al. 2017, "Google Vizier: A Service for Black-Box Optimization", KDD, section 3.2.2. The best value
so far of a trial is compared with the median of the others' reports at that epoch, as Optuna does.
"""

from automl.pruners.percentile import PercentilePruner
from trainers.config import Direction

__all__ = ["MedianPruner"]


class MedianPruner(PercentilePruner):
    """Stops a trial whose best value so far is worse than the median of ended trials at its epoch."""

    def __init__(
        self,
        direction: Direction,
        epochs: int,
        *,
        startup_trials: int = 5,
        warmup_epochs: int = 1,
        interval_epochs: int = 1,
    ) -> None:
        """Set the method's parameters; those of `PercentilePruner`, whose percentile is 50.

        Args:
            direction: whether larger or smaller objectives are better.
            epochs: the epochs of a full training.
            startup_trials: COMPLETE or PRUNED trials before anything is stopped, at least 1.
            warmup_epochs: epochs at the start of each trial in which it is not judged, at least 0.
            interval_epochs: epochs from one judgement of a trial to the next, at least 1.

        Raises:
            ValueError: a parameter is out of its range; all mistakes are named.
        """
        super().__init__(
            direction,
            epochs,
            percentile=50.0,
            startup_trials=startup_trials,
            warmup_epochs=warmup_epochs,
            interval_epochs=interval_epochs,
        )
