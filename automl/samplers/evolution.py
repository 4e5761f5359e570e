"""Aging evolution, also called regularized evolution.

Source: Real, Aggarwal, Huang and Le 2019, "Regularized Evolution for Image Classifier Architecture Search", AAAI,
algorithm 1 (arXiv 1802.01548). Deviations: the population is read from the study, so that several machines share one
and a resume goes on with it; hyperparameters evolve together with the architecture.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, get_args

from automl.inheritance import nearest
from automl.objective import loss_of, observed_value
from automl.samplers.base import Sampler
from automl.samplers.warm_up import WarmUp
from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.errors import InvalidConfigurationError
from search_spaces.parameters import Categorical, Parameter
from search_spaces.scores import UnknownScoreError, check_names
from search_spaces.space import SearchSpace
from studies.trial import Trial
from trainers.config import Direction

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["EvolutionSampler", "Mutation"]

Mutation: TypeAlias = Literal["uniform", "cell"]

LEAST_EDGES = 3
"""Parameters with the same choices from which on they are taken for the edges of a cell."""


class EvolutionSampler(Sampler):
    """Mutates the winner of a random tournament within the youngest trials.

    Old trials leave the population whatever their value ("aging"), so that a network that was only lucky once does
    not stay for ever. The first `population_size` trials are drawn, or chosen from a larger draw by a score of
    untrained networks.
    """

    has_parents: ClassVar[bool] = True

    def __init__(
        self,
        direction: Direction,
        *,
        population_size: int = 20,
        tournament_size: int | None = None,
        crossover_probability: float = 0.0,
        mutation: Mutation = "uniform",
        architecture_share: float = 0.5,
        warmup_draws: int = 0,
        warmup_score: str = "synflow",
    ) -> None:
        """Set the method's parameters.

        Args:
            direction: whether larger or smaller objectives are better.
            population_size: P of the paper, at least 2; small here, since budgets are tens of trials.
            tournament_size: S of the paper, 1 to `population_size`; None: half of it.
            crossover_probability: how often a child has two parents, winners of a tournament each, and takes each value
                from one of them (uniform crossover) before it is mutated; within [0, 1]. The paper's has one parent.
            mutation: what a change of the architecture may hit. `uniform`: each of its parameters alike. `cell`: half
                of the time an operation, which is one of three or more parameters with the same choices, half of the
                time another one, such as where an edge begins (the paper's two kinds of mutation, section 3.3).
            architecture_share: probability that the one mutation of a child changes the architecture rather than a
                hyperparameter, where the space has both; within [0, 1].
            warmup_draws: networks that are drawn and scored, and of which the best make the first population; 0: the
                first population is drawn.
            warmup_score: the score of untrained networks for that, a name of `search_spaces.scores`.

        Raises:
            ValueError: a parameter is out of its range; all mistakes are listed.
        """
        super().__init__(direction)
        wrong = [f"population_size={population_size} must be at least 2"] * (population_size < 2)
        if tournament_size is not None and not 1 <= tournament_size <= population_size:
            wrong.append(f"tournament_size={tournament_size} is outside [1, {population_size}] (population_size)")
        shares = {"crossover_probability": crossover_probability, "architecture_share": architecture_share}
        wrong += [f"{name}={share} is outside [0, 1]" for name, share in shares.items() if not 0.0 <= share <= 1.0]
        wrong += [f"mutation={mutation!r} is not uniform or cell"] * (mutation not in get_args(Mutation))
        if 0 != warmup_draws < population_size:
            wrong.append(f"warmup_draws={warmup_draws} must be 0, or at least population_size={population_size}")
        wrong += _unknown_score(warmup_score)
        if wrong:
            raise ValueError("; ".join(wrong))
        self.population_size = population_size
        self.tournament_size = population_size // 2 if tournament_size is None else tournament_size
        self.crossover_probability = crossover_probability
        self.mutation = mutation
        self.architecture_share = architecture_share
        self.scored_by = warmup_score if warmup_draws else None
        self._warm_up = WarmUp(warmup_draws)

    def suggest(self, space: SearchSpace, trials: Sequence[Trial], rng: "Generator") -> Configuration:
        """Fill the population first, then mutate a tournament's winner once."""
        population = self._population(space, trials)
        if len(population) < self.population_size:
            return self._founder(space, trials, rng)
        child = Configuration(self._winner(population, rng).configuration)
        if self.crossover_probability and rng.random() < self.crossover_probability:
            child = space.crossover(child, self._winner(population, rng).configuration, rng)
        return space.mutate(child, rng, names=self._mutable_names(space, rng))

    def notes(self, space: SearchSpace, budget: int | None) -> tuple[str, ...]:
        """Say when no trial will evolve from another one."""
        if budget is None or budget > self.population_size:
            return ()
        few = "the only trial is" if budget == 1 else f"all {budget} trials are"
        return (
            f"{few} of the first population of {self.population_size}: nothing will evolve; give more trials, or "
            "a smaller population_size",
        )

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

    def _founder(self, space: SearchSpace, trials: Sequence[Trial], rng: "Generator") -> Configuration:
        """A member of the first population: the most promising one that was not tried, or a drawn one."""
        if self.scored_by is None:
            return space.sample(rng)
        if self.score is None:
            raise ValueError("warmup_draws needs networks to score, and nothing builds any here; leave it out")
        tried = {Configuration(trial.configuration) for trial in trials}
        ranked = self._warm_up.ranked(space, self.score, rng)
        return next((each for each in ranked if each not in tried), None) or space.sample(rng)

    def _winner(self, population: Sequence[Trial], rng: "Generator") -> Trial:
        chosen: list[int] = rng.choice(len(population), size=self.tournament_size, replace=False).tolist()
        contestants = [population[place] for place in chosen]
        return min(contestants, key=lambda trial: (loss_of(trial, self.direction), trial.number))

    def _mutable_names(self, space: SearchSpace, rng: "Generator") -> Sequence[str]:
        architecture = space.names("architecture")
        others = [name for name in space.parameters if name not in architecture]
        if architecture and others and rng.random() >= self.architecture_share:
            return others
        if not architecture or self.mutation == "uniform":
            return architecture or others
        operations = _operations(space, architecture)
        rest = [name for name in architecture if name not in operations]
        if operations and rest:
            return operations if rng.random() < 0.5 else rest
        return architecture


def _operations(space: SearchSpace, architecture: Sequence[str]) -> Sequence[str]:
    """The parameters that say what is computed on the edges of cells: they share their choices."""
    choices = {name: _choices(space.parameters[name]) for name in architecture}
    edges = Counter(found for found in choices.values() if found is not None)
    return [name for name, found in choices.items() if found is not None and edges[found] >= LEAST_EDGES]


def _choices(parameter: Parameter) -> tuple[JsonScalar, ...] | None:
    """The choices of a parameter that may be an operation: named ones."""
    is_named = isinstance(parameter, Categorical) and all(isinstance(choice, str) for choice in parameter.choices)
    return parameter.choices if isinstance(parameter, Categorical) and is_named else None


def _unknown_score(name: str) -> list[str]:
    try:
        check_names([name])
    except UnknownScoreError as error:
        return [f"warmup_score: {error}"]
    return []


def _fits(space: SearchSpace, trial: Trial) -> bool:
    try:
        space.validate(trial.configuration)
    except InvalidConfigurationError:
        return False
    return True
