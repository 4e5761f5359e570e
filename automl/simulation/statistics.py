"""What several runs say together: means with the uncertainty that is left."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["Interval", "mean_interval"]

_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and its 95 % bootstrap interval over the runs."""

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the sign of the mean is no accident, as far as these runs tell."""
        return self.low > 0.0 or self.high < 0.0

    def __str__(self) -> str:
        return f"{self.mean:.3g} [{self.low:.3g}, {self.high:.3g}]"


def mean_interval(values: Sequence[float] | NDArray[np.float64]) -> Interval:
    """The mean of values, one for each run, at least one."""
    known = np.asarray(values, dtype=np.float64)
    low, high = np.quantile(known[_drawn(len(known))].mean(axis=1), [0.025, 0.975])
    return Interval(float(known.mean()), float(low), float(high))


@lru_cache(maxsize=4)
def _drawn(count: int) -> NDArray[np.int64]:
    """Which runs are in each resample: always the same, so that equal runs give equal intervals."""
    return np.random.default_rng(0).integers(count, size=(_RESAMPLES, count))
