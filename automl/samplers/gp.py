"""Optuna's Gaussian process with automatic relevance determination, on a snapshot in memory.

A costly method: a proposal takes tenths of a second, which a training of minutes hardly notices.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import optuna

from automl.samplers.base import Sampler
from automl.samplers.one_thread import one_thread
from automl.samplers.optuna_snapshot import ResultsAndPending
from search_spaces.configuration import Configuration
from search_spaces.space import SearchSpace
from studies.optuna_in_memory import study_of
from studies.trial import Trial
from trainers.config import Direction

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["GpSampler"]

HISTORY = 200
"""Trials that the process is shown at most, since its cost grows with their cube."""


class GpSampler(Sampler):
    """Proposes where Optuna's Gaussian process expects the largest improvement.

    Pending trials are taken into account. Parameters that are not always there are drawn.
    """

    def __init__(self, direction: Direction, *, startup_trials: int = 10) -> None:
        """Set the method's parameters.

        Args:
            direction: whether larger or smaller objectives are better.
            startup_trials: drawn trials with a result before the first model, at least 1.

        Raises:
            ValueError: `startup_trials` is below 1.
        """
        super().__init__(direction)
        if startup_trials < 1:
            raise ValueError(f"startup_trials={startup_trials} must be at least 1")
        self.startup_trials = startup_trials
        self._seen = ResultsAndPending(direction, HISTORY)

    def suggest(self, space: SearchSpace, trials: Sequence[Trial], rng: "Generator") -> Configuration:
        """Ask Optuna's sampler, seeded from `rng`, on a study that holds the snapshot."""
        distributions = space.distributions()
        results, pending = self._seen(trials, distributions)
        sampler = optuna.samplers.GPSampler(
            seed=int(rng.integers(2**31)), n_startup_trials=self.startup_trials, warn_independent_sampling=False
        )
        study = study_of([*results, *pending], self.direction, sampler)
        with one_thread():
            proposal = space.complete(study.ask(dict(distributions)).params, rng)
        # Where the best is known, it would be proposed again and again, at this cost.
        is_known = any(trial.configuration == proposal for trial in trials)
        return space.sample(rng) if is_known else proposal
