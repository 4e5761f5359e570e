"""Successive halving with several first rungs at once, as nobody knows which is the right one.

Source: Li et al. 2018, "Hyperband: A Novel Bandit-Based Approach to Hyperparameter Optimization", JMLR 18, in the
asynchronous form of Li et al. 2020 (arXiv 1810.05934), section 3.3. Each bracket stops its own trials as `asha` does,
from the second one on. The longest training is known from the start, so that the first trials are judged, too.
"""

from collections.abc import Mapping, Sequence

from automl.pruners.asha import AshaPruner
from automl.pruners.base import Pruner
from automl.pruners.rungs import rung_epochs
from studies.trial import Trial
from trainers.config import Direction
from trainers.reporting import Decision

__all__ = ["HyperbandPruner"]

_GOLDEN = 0.6180339887498949
"""Multiples of it fill the unit interval evenly, however many there are (Weyl 1916)."""


class HyperbandPruner(Pruner):
    """Puts each trial in a bracket by its number, and stops it at a rung unless it is among the best there.

    A bracket that begins to judge late gets fewer trials, so that all brackets have about the same share of the epochs.
    """

    def __init__(self, direction: Direction, epochs: int, *, min_epochs: int = 1, eta: int = 3) -> None:
        """Set the method's parameters.

        Args:
            direction: whether larger or smaller objectives are better.
            epochs: the epochs of a full training.
            min_epochs: the first rung of the first bracket, at least 1.
            eta: the reduction factor, at least 2; the first rung of a bracket is eta times that of the one before.

        Raises:
            ValueError: a parameter is out of its range.
        """
        super().__init__(direction, epochs)
        firsts = rung_epochs(min_epochs, epochs, eta) or (min_epochs,)
        self.brackets = [_Bracket(self, at, min_epochs=first, eta=eta) for at, first in enumerate(firsts)]
        left = [len(firsts) - at for at in range(len(firsts))]
        shares = [eta ** (count - 1) / count for count in left]  # trials of a bracket in the paper's algorithm 1
        self._ends = [sum(shares[: at + 1]) / sum(shares) for at in range(len(shares))]

    def bracket(self, number: int) -> int:
        """The bracket of the trial of that number, counted from the one that judges first."""
        place = (number * _GOLDEN) % 1.0
        return next((at for at, end in enumerate(self._ends) if place < end), len(self._ends) - 1)

    def decide(self, trial: Trial, trials: Sequence[Trial]) -> Decision:
        """Judge the trial among those of its bracket."""
        return self.brackets[self.bracket(trial.number)].decide(trial, trials)


class _Bracket(AshaPruner):
    """Judges the trials of one bracket among themselves."""

    def __init__(self, whole: HyperbandPruner, place: int, *, min_epochs: int, eta: int) -> None:
        super().__init__(whole.direction, whole.epochs, min_epochs=min_epochs, eta=eta, min_trials=2)
        self._whole = whole
        self._place = place

    def losses(self, trial: Trial) -> Mapping[int, float] | None:
        """What of a trial of this bracket counts."""
        return super().losses(trial) if self._whole.bracket(trial.number) == self._place else None
