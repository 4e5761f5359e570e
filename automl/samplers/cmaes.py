"""Covariance matrix adaptation: a normal distribution that moves to where the better half of each generation was.

Source: Hansen 2016, "The CMA Evolution Strategy: A Tutorial" (arXiv 1604.00772), by the library `cmaes`, as in Optuna.
The distribution is worked out anew from the study in the order of the trials' numbers: nothing needs to be kept.
"""

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import cmaes
import numpy as np
from numpy.typing import NDArray

from automl.objective import is_infeasible, observed_value, to_loss
from automl.samplers.base import Sampler
from automl.samplers.one_thread import one_thread
from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.parameters import Categorical, Float, Integer
from search_spaces.space import SearchSpace
from studies.trial import Trial
from trainers.config import Direction

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["CmaesSampler"]

LEAST_DIMENSIONS = 2
"""Of the library's normal distributions; what a space lacks is filled up with a number that means nothing."""
_SPREAD = 1.0 / 6.0
"""Standard deviation at the beginning, as a share of the range."""


class CmaesSampler(Sampler):
    """Draws numbers from a distribution that learns which of them go together; choices are drawn evenly.

    For spaces of numbers, and some hundred trials. What is not there in a trial counts as the middle of its range. Many
    results of other methods disturb it, since it takes all for its own draws.
    """

    def __init__(self, direction: Direction, *, population_size: int | None = None) -> None:
        """Set the method's parameters.

        Args:
            direction: whether larger or smaller objectives are better.
            population_size: trials with a result that the distribution learns from at once, at least 4; None: 4 and 3
                times the logarithm of the count of numbers.

        Raises:
            ValueError: `population_size` is below 4.
        """
        super().__init__(direction)
        if population_size is not None and population_size < 4:
            raise ValueError(f"population_size={population_size} must be at least 4")
        self.population_size = population_size
        self._course: _Course | None = None

    def suggest(self, space: SearchSpace, trials: Sequence[Trial], rng: "Generator") -> Configuration:
        """Draw from the distribution that the generations so far have led to."""
        numbers = {name: each for name, each in space.parameters.items() if not isinstance(each, Categorical)}
        course = self._course
        if course is None or course.numbers != numbers:
            course = self._course = _Course(numbers, self.population_size)
        drawn = course.after(_told(trials, numbers, self.direction), rng)
        part: dict[str, JsonScalar] = {
            name: each.at(float(share)) for (name, each), share in zip(numbers.items(), drawn, strict=False)
        }
        return space.complete(part, rng)


_Told = list[tuple[NDArray[np.float64], float]]


class _Course:
    """The distribution after each generation; a study that has gone on is not gone through again."""

    def __init__(self, numbers: dict[str, Float | Integer], population_size: int | None) -> None:
        self.numbers = numbers
        self._dimensions = max(LEAST_DIMENSIONS, len(numbers))
        self._population_size = population_size
        self._generations: list[tuple[list[tuple[bytes, float]], cmaes.CMA]] = []

    def after(self, told: _Told, rng: "Generator") -> NDArray[np.float64]:
        """One draw: a share of its range for each number."""
        with one_thread(), np.errstate(all="ignore"):  # a person's code may have let NumPy raise
            optimizer = copy.deepcopy(self._at_the_end(told))
            optimizer.reseed_rng(int(rng.integers(2**31)))
            return np.asarray(optimizer.ask())

    def _at_the_end(self, told: _Told) -> cmaes.CMA:
        optimizer = self._beginning()
        size = optimizer.population_size
        for place, start in enumerate(range(0, len(told) - size + 1, size)):
            generation = [(_padded(shares, self._dimensions), loss) for shares, loss in told[start : start + size]]
            name = [(shares.tobytes(), loss) for shares, loss in generation]
            if place < len(self._generations) and self._generations[place][0] == name:
                optimizer = self._generations[place][1]
                continue
            optimizer = copy.deepcopy(optimizer)
            optimizer.tell(generation)
            self._generations[place:] = [(name, optimizer)]
        return optimizer

    def _beginning(self) -> cmaes.CMA:
        return cmaes.CMA(
            mean=np.full(self._dimensions, 0.5),
            sigma=_SPREAD,
            bounds=np.tile([0.0, 1.0], (self._dimensions, 1)),
            population_size=self._population_size,
            seed=0,  # draws are from the generator of the proposal
        )


def _told(trials: Sequence[Trial], numbers: dict[str, Float | Integer], direction: Direction) -> _Told:
    """Shares and loss of each trial with a result; what cannot be trained is as bad as the worst of them."""
    losses = {
        trial.number: to_loss(value, direction)
        for trial in trials
        if (value := observed_value(trial)) is not None and np.isfinite(value)
    }
    worst = max(losses.values(), default=None)
    if worst is None:
        return []
    return [
        (_shares(trial, numbers), losses.get(trial.number, worst))
        for trial in trials
        if trial.number in losses or is_infeasible(trial)
    ]


def _shares(trial: Trial, numbers: dict[str, Float | Integer]) -> NDArray[np.float64]:
    return np.array(
        [
            0.5 if (value := trial.configuration.get(name)) is None else min(max(each.position(value), 0.0), 1.0)
            for name, each in numbers.items()
        ]
    )


def _padded(shares: NDArray[np.float64], dimensions: int) -> NDArray[np.float64]:
    return np.concatenate([shares, np.full(dimensions - len(shares), 0.5)])
