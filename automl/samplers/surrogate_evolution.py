"""Evolution proposes many candidates, two small Gaussian processes choose one of them.

The candidates are mutants and children of the configurations that seem best, and draws from the whole space; each model
looks at another view of the losses, and the improvements that both expect are added. Everything is found anew for each
proposal, from at most 250 trials, so that the cost is bounded and a resumed study goes on as an unbroken one. Where
trials were stopped early, or rest, the length of a training is an input of the models, too.

Sources: regularized evolution (Real et al. 2019, arXiv 1802.01548) for the candidates; expected improvement (Jones et
al. 1998) in logarithms (Ament et al. 2023, arXiv 2310.20708); output transforms as in HEBO (Cowen-Rivers et al. 2022,
arXiv 2012.03826) and Salinas et al. 2020 (arXiv 1909.13595); pending trials as in Ginsbourger et al. 2010. The parts
are modules of `automl.samplers.surrogate`.
"""

from collections.abc import Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from automl.inheritance import nearest
from automl.objective import loss_of, observed_value
from automl.samplers.base import Sampler
from automl.samplers.one_thread import one_thread
from automl.samplers.replicates import least_repeated
from automl.samplers.surrogate.dimensions import Dimensions, Rows
from automl.samplers.surrogate.model import Model
from automl.samplers.surrogate.proposals import around_the_best, near, well_spread, within_branch
from automl.samplers.surrogate.records import Lesson, Records
from search_spaces.configuration import Configuration
from search_spaces.errors import SpaceRuleError
from search_spaces.space import SearchSpace
from studies.trial import Trial
from trainers.config import Direction

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["SurrogateEvolutionSampler"]

LEAST_RESULTS = 3
"""Results without which there is no model."""
ASCENT_STARTS, ASCENT_SIGMAS = 5, (0.12, 0.06)
MOST_LOOKED_AT, MOST_DRAWN = 100, 20
"""Candidates, and draws after them, of which the first that is new and can be built is proposed."""
PARENTS = 16
"""Best trials that proposals descend from: candidates are mutants and children of about as many."""


class SurrogateEvolutionSampler(Sampler):
    """Proposes what promises the largest improvement, with few trials as with many.

    Running trials are taken to end as expected, so that parallel proposals spread out. Configurations that cannot be
    trained count as bad ones.
    """

    has_parents: ClassVar[bool] = True

    def __init__(
        self,
        direction: Direction,
        *,
        startup_trials: int = 5,
        candidates: int = 500,
        branch_probability: float = 0.3,
        repeat_from: int | None = None,
        repeat_best: int = 5,
    ) -> None:
        """Set the method's parameters.

        Args:
            direction: whether larger or smaller objectives are better.
            startup_trials: drawn trials with a result, or under way, before the first model, at least 3.
            candidates: configurations that a model chooses from, at least 20.
            branch_probability: how often, within [0, 1], a proposal is bound to one branch of a conditional space, so
                that none is given up for a bad beginning.
            repeat_from: the number of the trial from which on nothing new is proposed, and the best configurations are
                trained again in turn, each time by another seed; above `startup_trials`; None: never. For noisy
                objectives and more than about 80 trials: the last tenth of them.
            repeat_best: how many configurations take part in that, at least 1.

        Raises:
            ValueError: a parameter is out of its range; all mistakes are listed.
        """
        super().__init__(direction)
        wrong = [f"startup_trials={startup_trials} must be at least {LEAST_RESULTS}"] * (startup_trials < LEAST_RESULTS)
        wrong += [f"candidates={candidates} must be at least 20"] * (candidates < 20)
        wrong += [f"branch_probability={branch_probability} is outside [0, 1]"] * (not 0.0 <= branch_probability <= 1.0)
        if repeat_from is not None and repeat_from <= startup_trials:
            wrong.append(f"repeat_from={repeat_from} must be above startup_trials={startup_trials}")
        wrong += [f"repeat_best={repeat_best} must be at least 1"] * (repeat_best < 1)
        if wrong:
            raise ValueError("; ".join(wrong))
        self.repeat_from = repeat_from
        self.repeat_best = repeat_best
        self.startup_trials = startup_trials
        self.candidates = candidates
        self.branch_probability = branch_probability
        self._records: Records | None = None

    def suggest(self, space: SearchSpace, trials: Sequence[Trial], rng: "Generator") -> Configuration:
        """Draw well spread configurations first, then choose the most promising of many candidates."""
        if self.repeat_from is not None and self.may_repeat(trials):
            again = least_repeated(trials, self.direction, since=self.repeat_from, best=self.repeat_best)
            if again is not None:
                return again
        records = self._looked(space, trials)
        if not len(records.dimensions):
            return space.sample(rng)
        with one_thread(), np.errstate(all="ignore"):  # a person's code may have let NumPy raise
            ranked = self._spread(records, rng) if self._is_start(records) else self._most_promising(records, rng)
        return _first_new(space, records, ranked, rng)

    def may_repeat(self, trials: Sequence[Trial]) -> bool:
        """Whether it is time to train the best again."""
        return self.repeat_from is not None and len(trials) > 0 and trials[-1].number + 1 >= self.repeat_from

    def parents(self, space: SearchSpace, trials: Sequence[Trial]) -> Sequence[Trial]:
        """The best trials, but for results of elsewhere, which have no weights here."""
        own = (trial for trial in trials if not trial.is_imported and observed_value(trial) is not None)
        return nsmallest(PARENTS, own, key=lambda trial: (loss_of(trial, self.direction), trial.number))

    def parent(self, space: SearchSpace, configuration: Configuration, trials: Sequence[Trial]) -> Trial | None:
        """The nearest of the parents, whatever way led to the proposal."""
        if self._is_start(self._looked(space, trials)):
            return None  # it was drawn
        return nearest(space, configuration, self.parents(space, trials), self.direction)

    def _looked(self, space: SearchSpace, trials: Sequence[Trial]) -> Records:
        if self._records is None or self._records.space is not space:
            self._records = Records(space, self.direction)
        self._records.look(trials)
        return self._records

    def _is_start(self, records: Records) -> bool:
        results = int((records.lessons == Lesson.RESULT).sum())
        pending = int((records.lessons == Lesson.PENDING).sum())
        return results < LEAST_RESULTS or results + pending < self.startup_trials

    def _spread(self, records: Records, rng: "Generator") -> Rows:
        return well_spread(records.dimensions, records.rows[records.lessons != Lesson.NOTHING], rng)

    def _most_promising(self, records: Records, rng: "Generator") -> Rows:
        """New rows, the most promising first."""
        dimensions, model = records.dimensions, Model(records, rng)
        if dimensions.gates and rng.random() < self.branch_probability:
            rows = _new(within_branch(dimensions, model.ranked, rng, count=self.candidates), records)
            return rows[(-model.promise(rows)).argsort(kind="stable")]
        rows = _new(around_the_best(dimensions, model.ranked, rng, count=self.candidates), records)
        return self._ascent(dimensions, model, rows, records, rng)

    def _ascent(self, dimensions: Dimensions, model: Model, rows: Rows, records: Records, rng: "Generator") -> Rows:
        """Add what is near the best candidates, as long as that is better."""
        promise = model.promise(rows)
        for sigma in ASCENT_SIGMAS:
            if not len(rows):
                break
            order = (-promise).argsort(kind="stable")
            found = _new(near(dimensions, rows[order[:ASCENT_STARTS]], rng, sigma=sigma), records)
            of_found = model.promise(found)
            is_better = len(found) > 0 and of_found.max() > promise.max()
            rows, promise = np.concatenate([rows, found]), np.concatenate([promise, of_found])
            if not is_better:
                break
        return rows[(-promise).argsort(kind="stable")]


def _new(rows: Rows, records: Records) -> Rows:
    """The rows that no trial has, each once."""
    once = {row.tobytes(): at for at, row in reversed(list(enumerate(rows)))}
    return rows[[at for name, at in sorted(once.items(), key=lambda item: item[1]) if not records.is_known(rows[at])]]


def _first_new(space: SearchSpace, records: Records, ranked: Rows, rng: "Generator") -> Configuration:
    """The first row that stands for a network that is new and can be built; else what is drawn."""
    for row in ranked[:MOST_LOOKED_AT]:
        configuration = space.complete(records.dimensions.part(row), rng)
        if _is_of_use(space, records, configuration):
            return configuration
    draws = [space.sample(rng) for _ in range(MOST_DRAWN)]
    return next((drawn for drawn in draws if _is_of_use(space, records, drawn)), draws[0])


def _is_of_use(space: SearchSpace, records: Records, configuration: Configuration) -> bool:
    try:
        return not records.is_known_by_key(space.key(configuration)) and space.refusal(configuration) is None
    except SpaceRuleError:
        return False  # the scheduler says why, if there is nothing else
