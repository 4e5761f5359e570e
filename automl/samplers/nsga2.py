"""Optuna's NSGA-II: generations of children of the best, by crossover and mutation.

Source: Deb et al. 2002, "A fast and elitist multiobjective genetic algorithm: NSGA-II". A study has one objective here,
so that the best by non-dominated sorting are simply the best. Optuna keeps in each trial which generation it is of;
here generations are cut from the study in the order of the numbers, so that nothing needs to be kept.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import optuna
from optuna.trial import FrozenTrial

from automl.objective import to_loss
from automl.samplers.base import Sampler
from automl.samplers.optuna_snapshot import ResultsAndPending
from search_spaces.configuration import Configuration
from search_spaces.space import SearchSpace
from studies.optuna_in_memory import study_of
from studies.trial import Trial
from trainers.config import Direction

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["Nsga2Sampler"]

_GENERATION = optuna.samplers.NSGAIISampler._get_generation_key()


class Nsga2Sampler(Sampler):
    """Crosses two of the best trials of all full generations, and mutates the child.

    Parameters that are not always there are drawn.
    """

    def __init__(self, direction: Direction, *, population_size: int = 20, crossover_probability: float = 0.9) -> None:
        """Set the method's parameters.

        Args:
            direction: whether larger or smaller objectives are better.
            population_size: trials of a generation, at least 2; the first generation is drawn.
            crossover_probability: how often a child has two parents, within [0, 1].

        Raises:
            ValueError: a parameter is out of its range; all mistakes are listed.
        """
        super().__init__(direction)
        wrong = [f"population_size={population_size} must be at least 2"] * (population_size < 2)
        if not 0.0 <= crossover_probability <= 1.0:
            wrong.append(f"crossover_probability={crossover_probability} is outside [0, 1]")
        if wrong:
            raise ValueError("; ".join(wrong))
        self.population_size = population_size
        self.crossover_probability = crossover_probability
        self._seen = ResultsAndPending(direction)

    def suggest(self, space: SearchSpace, trials: Sequence[Trial], rng: "Generator") -> Configuration:
        """Ask Optuna's sampler, seeded from `rng`, on a study of two generations: the best so far, and the newest."""
        distributions = space.distributions()
        results, _ = self._seen(trials, distributions)
        sampler = optuna.samplers.NSGAIISampler(
            seed=int(rng.integers(2**31)),
            population_size=self.population_size,
            crossover_prob=self.crossover_probability,
        )
        study = study_of(self._generations(results), self.direction, sampler)
        return space.complete(study.ask(dict(distributions)).params, rng)

    def _generations(self, results: list[FrozenTrial]) -> list[FrozenTrial]:
        """The best of all full generations as generation 0, and the unfinished one as the next."""
        full = len(results) // self.population_size * self.population_size
        best = sorted(results[:full], key=lambda frozen: to_loss(frozen.value or 0.0, self.direction))
        parents, newest = best[: self.population_size], results[full:]
        for generation, members in enumerate((parents, newest) if full else (newest,)):
            for frozen in members:
                frozen.system_attrs = {_GENERATION: generation}
        return [*parents, *newest]
