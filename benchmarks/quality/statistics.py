"""What many runs say: means with their uncertainty, paired differences, shares of what random search leaves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Interval", "holm", "mean_interval", "paired_interval", "suite_score"]

_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and its 95 % bootstrap interval over the seeds."""

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the sign of the mean is no accident, as far as these seeds tell."""
        return self.low > 0.0 or self.high < 0.0

    def __str__(self) -> str:
        return f"{self.mean:.3g} [{self.low:.3g}, {self.high:.3g}]"


def mean_interval(values: Sequence[float] | NDArray[np.float64]) -> Interval:
    """The mean of values, one for each seed."""
    known = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(0).integers(len(known), size=(_RESAMPLES, len(known)))
    low, high = np.quantile(known[drawn].mean(axis=1), [0.025, 0.975])
    return Interval(float(known.mean()), float(low), float(high))


def paired_interval(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Interval:
    """The mean difference over the seeds that both have."""
    return mean_interval([ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())])


def suite_score(ours: Mapping[str, float], random: Mapping[str, float]) -> float:
    """The mean regret as a share of random search's, averaged over the tasks; 1 is as good as random, 0 is perfect."""
    return float(np.mean([ours[task] / random[task] for task in ours]))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values of several tests, corrected for there being several (Holm 1979)."""
    order = np.argsort(p_values)
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        corrected[at] = largest
    return corrected
