"""The plug point of early stopping: a pruner judges a running trial after each report."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

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

    pauses: ClassVar[bool] = False
    """Whether trials are put to rest, and those go on that are `promoted`; it needs trainings with checkpoints."""

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

    def rests(self, trial: Trial) -> bool:
        """Whether a trial that nobody trains waits until it is `promoted`; if not, it goes on at once.

        Args:
            trial: one that was paused, whether by this pruner or by the end of its process.
        """
        return False

    def promoted(self, trials: Sequence[Trial], resting: Sequence[Trial], *, is_last: bool = False) -> Trial | None:
        """The trial that goes on next; None: at present none of them.

        Args:
            trials: the whole study.
            resting: those of its trials that rest, of which one is chosen.
            is_last: whether nothing new will be started: who is not chosen now is pruned.
        """
        return None
