"""How a search went: the best value so far at every moment, and after every training that was tried."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from automl.executors.simulated import Simulation
from automl.objective import to_loss
from studies.ranking import best_of
from studies.trial import Trial, TrialState
from trainers.config import Direction

__all__ = ["Course", "course_of"]

_TRIED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAILED, TrialState.PAUSED)


@dataclass(frozen=True, kw_only=True)
class Course:
    """The way of one search.

    What counts as found so far is the best report of a trial that does not fail; `best` is what the search leaves. A
    training was tried once it has ended or come to rest: those that rest may end all together when the search does.

    Attributes:
        times_s: when something was reported or ended, in order.
        tried: trainings that had been tried by then.
        values: the best value by then; NaN: there was none.
        best: the best complete trial; None: no trial completed.
        seconds: how long the search took.
        epochs: epochs that were trained.
        trials: those that were started.
        reason: why it ended.
    """

    times_s: NDArray[np.float64]
    tried: NDArray[np.int64]
    values: NDArray[np.float64]
    best: Trial | None
    seconds: float
    epochs: int
    trials: tuple[Trial, ...]
    reason: str

    @cached_property
    def count(self) -> int:
        """Trainings that were tried."""
        return int(self.tried[-1]) if len(self.tried) else 0

    def at_times(self, times_s: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
        """The best value by each of these moments."""
        return self._at(np.searchsorted(self.times_s, times_s, side="right"))

    def at_tried(self, counts: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
        """The best value by the time when so many trainings had been tried, until the next one was."""
        return self._at(np.searchsorted(self.tried, counts, side="right"))

    def _at(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.concatenate([[math.nan], self.values])[places]


def course_of(found: Simulation, direction: Direction) -> Course:
    """Read the way of a search from what happened."""
    failed = {trial.number for trial in found.trials if trial.state is TrialState.FAILED}
    tried: set[int] = set()
    best, best_loss = math.nan, math.inf
    counts, values = [], []
    for happening in found.happenings:
        if happening.state in _TRIED:
            tried.add(happening.number)
        if happening.value is not None and happening.number not in failed:
            loss = to_loss(happening.value, direction)
            if loss < best_loss:
                best, best_loss = happening.value, loss
        counts.append(len(tried))
        values.append(best)
    ranked = best_of(found.trials, direction, 1)
    return Course(
        times_s=np.array([happening.time_s for happening in found.happenings]),
        tried=np.array(counts, dtype=np.int64),
        values=np.array(values, dtype=np.float64),
        best=ranked[0] if ranked else None,
        seconds=found.seconds,
        epochs=found.epochs,
        trials=tuple(trial for trial in found.trials if trial.state is not TrialState.INFEASIBLE),
        reason=found.reason,
    )
