"""The plug point of early stopping: a pruner judges a running trial after each report."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from studies.trial import Trial
from trainers.config import Direction
from trainers.reporting import Decision

__all__ = ["Pruner"]


class Pruner(ABC):
    """Answers one question and writes nothing.

    Attributes:
        direction: whether larger or smaller objectives are better.
        epochs: the epochs of a full training, at least 1.
    """

    def __init__(self, direction: Direction, epochs: int) -> None:
        if epochs < 1:
            raise ValueError(f"epochs={epochs} must be at least 1")
        self.direction: Direction = direction
        self.epochs = epochs

    @abstractmethod
    def decide(self, trial: Trial, trials: Sequence[Trial]) -> Decision:
        """Judge a trial at the epoch it has just reported.

        Args:
            trial: the running trial, its newest report included.
            trials: the whole study, `trial` among them or not.

        Returns:
            CONTINUE, STOP (pruned for good) or PAUSE (may go on later).
        """
