"""Aging evolution, also called regularized evolution.

Source: Real, Aggarwal, Huang and Le 2019, "Regularized Evolution for Image Classifier Architecture Search", AAAI,
algorithm 1 (arXiv 1802.01548). Deviations: the population is read from the study, so that several machines share one
and a resume goes on with it; hyperparameters evolve together with the architecture.
"""

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from automl.inheritance import nearest
from automl.objective import loss_of, observed_value
from automl.samplers.base import Sampler
from search_spaces.configuration import Configuration
from search_spaces.errors import InvalidConfigurationError
from search_spaces.space import SearchSpace
from studies.trial import Trial
from trainers.config import Direction

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["EvolutionSampler"]


class EvolutionSampler(Sampler):
    """Mutates the winner of a random tournament within the youngest trials.

    Old trials leave the population whatever their value ("aging"), so that a network that was only lucky once does
    not stay for ever. The first `population_size` trials are random.
    """

    has_parents: ClassVar[bool] = True

    def __init__(
        self,
        direction: Direction,
        *,
        population_size: int = 12,
        tournament_size: int = 4,
        architecture_share: float = 0.5,
    ) -> None:
        """Set the method's parameters.

        Args:
            direction: whether larger or smaller objectives are better.
            population_size: P of the paper, at least 2; small here, since budgets are tens of trials.
            tournament_size: S of the paper, 1 to `population_size`.
            architecture_share: probability that the one mutation of a child changes the architecture rather than a
                hyperparameter, where the space has both; within [0, 1].

        Raises:
            ValueError: a parameter is out of its range.
        """
        super().__init__(direction)
        if population_size < 2:
            raise ValueError(f"population_size={population_size} must be at least 2")
        if not 1 <= tournament_size <= population_size:
            raise ValueError(f"tournament_size={tournament_size} is outside [1, {population_size}] (population_size)")
        if not 0.0 <= architecture_share <= 1.0:
            raise ValueError(f"architecture_share={architecture_share} is outside [0, 1]")
        self.population_size = population_size
        self.tournament_size = tournament_size
        self.architecture_share = architecture_share

    def suggest(self, space: SearchSpace, trials: Sequence[Trial], rng: "Generator") -> Configuration:
        """Draw at random until the population is full, then mutate a tournament's winner once."""
        population = self._population(space, trials)
        if len(population) < self.population_size:
            return space.sample(rng)
        contestants = rng.choice(len(population), size=self.tournament_size, replace=False)
        winner = min((population[i] for i in contestants), key=lambda t: (loss_of(t, self.direction), t.number))
        return space.mutate(Configuration(winner.configuration), rng, names=self._mutable_names(space, rng))

    def parents(self, space: SearchSpace, trials: Sequence[Trial]) -> Sequence[Trial]:
        """The population, but for results of elsewhere, which have no weights here."""
        return [trial for trial in self._population(space, trials) if not trial.is_imported]

    def parent(self, space: SearchSpace, configuration: Configuration, trials: Sequence[Trial]) -> Trial | None:
        """The member of the population that is nearest to a child, in most cases the tournament's winner.

        Another member may have the very architecture that the mutation led to: then more weights fit.
        """
        if len(self._population(space, trials)) < self.population_size:
            return None  # it was drawn
        return nearest(space, configuration, self.parents(space, trials), self.direction)

    def _population(self, space: SearchSpace, trials: Sequence[Trial]) -> Sequence[Trial]:
        """The youngest trials with a value, oldest first; those of another version of the space stay out."""
        valued = (trial for trial in reversed(trials) if observed_value(trial) is not None and _fits(space, trial))
        return list(islice(valued, self.population_size))[::-1]  # looks no further back than it must

    def _mutable_names(self, space: SearchSpace, rng: "Generator") -> Sequence[str]:
        architecture = space.names("architecture")
        others = [name for name in space.parameters if name not in architecture]
        if architecture and others:
            return architecture if rng.random() < self.architecture_share else others
        return architecture or others


def _fits(space: SearchSpace, trial: Trial) -> bool:
    try:
        space.validate(trial.configuration)
    except InvalidConfigurationError:
        return False
    return True
