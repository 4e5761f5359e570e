"""Progressive asynchronous successive halving: no training goes farther than it takes to know who is best.

Source: Bohdal et al. 2023, "PASHA: Efficient HPO and NAS with Progressive Resource Allocation" (arXiv 2207.06940),
algorithm 1 with soft ranking and its estimate of the noise. Deviations: what is open is read from the study as it is
now, so that a resumed search goes on as an unbroken one; only the best trials of a rung are compared; the best trial is
trained to its end when nothing new is left.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from automl.objective import is_finite, to_loss
from automl.pruners.asha_promote import AshaPromotePruner
from studies.trial import Trial
from trainers.config import Direction

__all__ = ["PashaPruner"]

COMPARED = 30
"""Best trials of a rung that are compared, at most: the best decide, and a decision stays cheap."""
_NOISE_PERCENTILE = 90.0


class PashaPruner(AshaPromotePruner):
    """Opens the next rung when the order at the highest open one is not that of the rung before.

    The first two rungs are open from the beginning. Differences that learning curves cross several times are noise, and
    do not count as another order.
    """

    def __init__(self, direction: Direction, epochs: int, *, min_epochs: int | None = None, eta: int = 3) -> None:
        """Set the method's parameters; see `AshaPromotePruner`."""
        super().__init__(direction, epochs, min_epochs=min_epochs, eta=eta)
        self._known: dict[int, tuple[list[tuple[int, int]], bool]] = {}

    def _is_open(self, rung: int) -> bool:
        """Whether the rungs up to the one that follows it are open."""
        below = self.rungs[: self.rungs.index(rung) + 1]
        return all(self._differ(*pair) for pair in pairwise(below))

    def _differ(self, lower: int, higher: int) -> bool:
        """Whether the best at a rung stood in another order at the rung before."""
        trials = [self._standings.trial(entry) for entry in self._standings.at(higher)[:COMPARED]]
        name = [(trial.id, trial.last_epoch) for trial in trials]
        if higher not in self._known or self._known[higher][0] != name:
            self._known[higher] = (name, self._have_another_order(trials, lower, higher))
        return self._known[higher][1]

    def _have_another_order(self, trials: list[Trial], lower: int, higher: int) -> bool:
        """Compare the orders, ties within the noise allowed (soft ranking)."""
        trials = [trial for trial in trials if lower in trial.reports and all(map(is_finite, trial.reports.values()))]
        if len(trials) < 2:
            return False
        before, now = (np.array([self._loss(trial, rung) for trial in trials]) for rung in (lower, higher))
        noise = _noise(np.array([self._curve(trial, higher) for trial in trials]))
        order_before, order_now = before.argsort(kind="stable"), now.argsort(kind="stable")
        return bool((np.abs(before[order_now] - before[order_before]) > noise).any())

    def _loss(self, trial: Trial, epoch: int) -> float:
        return to_loss(trial.reports[epoch], self.direction)

    def _curve(self, trial: Trial, last: int) -> list[float]:
        """The losses of all epochs up to one; what was not reported is what was known before."""
        losses: list[float] = []
        for epoch in range(1, last + 1):
            losses.append(self._loss(trial, epoch) if epoch in trial.reports else (losses[-1] if losses else np.nan))
        return losses


def _noise(curves: NDArray[np.float64]) -> float:
    """How far apart two curves are at their ends that have crossed twice or more; 0 where none have.

    Args:
        curves: trial x epoch.
    """
    first, second = np.triu_indices(len(curves), 1)
    apart = np.nan_to_num(curves[first] - curves[second])
    signs = np.sign(apart)
    crossings = np.zeros(len(apart), dtype=int)
    last = np.zeros(len(apart))
    for sign in signs.T:  # epoch by epoch; a tie is no crossing
        crossings += (sign * last) < 0
        last = np.where(sign == 0, last, sign)
    noisy = np.abs(apart[crossings >= 2, -1])
    return float(np.percentile(noisy, _NOISE_PERCENTILE)) if len(noisy) else 0.0
