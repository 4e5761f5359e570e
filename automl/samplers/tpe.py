"""Optuna's tree-structured Parzen estimator on a snapshot in memory.

Source: Bergstra et al. 2011, "Algorithms for Hyper-Parameter Optimization", NeurIPS; multivariate form and constant
liar as in Optuna 5. The database is never asked: the snapshot becomes an in-memory Optuna study, so that the cost of
a suggestion has no SQL in it.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from automl.samplers.base import Sampler
from search_spaces.configuration import Configuration
from search_spaces.space import SearchSpace
from studies.optuna_chatter import without_chatter
from studies.trial import Trial, TrialState
from trainers.config import Direction

__all__ = ["TpeSampler"]

_OPTUNA_STATE = {
    TrialState.COMPLETE: OptunaState.COMPLETE,
    TrialState.PRUNED: OptunaState.PRUNED,
    TrialState.RUNNING: OptunaState.RUNNING,
    # A paused trial will get a value later: the estimator keeps away from it as from a running one.
    TrialState.PAUSED: OptunaState.RUNNING,
}


class TpeSampler(Sampler):
    """Models good and bad configurations by two densities and proposes where their ratio is highest.

    Running trials count as bad ones ("constant liar"), so that parallel proposals spread out.
    """

    def __init__(self, direction: Direction, *, startup_trials: int = 10) -> None:
        """Set the method's parameters.

        Args:
            direction: whether larger or smaller objectives are better.
            startup_trials: random trials before the first model, at least 1.

        Raises:
            ValueError: `startup_trials` is below 1.
        """
        super().__init__(direction)
        if startup_trials < 1:
            raise ValueError(f"startup_trials={startup_trials} must be at least 1")
        self.startup_trials = startup_trials

    def suggest(self, space: SearchSpace, trials: Sequence[Trial], rng: np.random.Generator) -> Configuration:
        """Ask Optuna's sampler, seeded from `rng`, on a study that holds the snapshot."""
        distributions = space.distributions()
        sampler = optuna.samplers.TPESampler(seed=int(rng.integers(2**31)), n_startup_trials=self.startup_trials)
        storage = optuna.storages.InMemoryStorage()
        with without_chatter():
            study_id = storage.create_new_study([_optuna_direction(self.direction)], "snapshot")
        for frozen in _frozen_trials(trials, distributions):
            storage.create_new_trial(study_id, template_trial=frozen)
        study = optuna.load_study(study_name="snapshot", storage=storage, sampler=sampler)
        return space.validate(study.ask(dict(distributions)).params)


def _optuna_direction(direction: Direction) -> optuna.study.StudyDirection:
    return optuna.study.StudyDirection[direction.upper()]


def _frozen_trials(trials: Sequence[Trial], distributions: Mapping[str, BaseDistribution]) -> Sequence[FrozenTrial]:
    """The trials that TPE can learn from: their states are in the table and their values in the present ranges."""
    return [
        optuna.trial.create_trial(
            state=_OPTUNA_STATE[trial.state],
            value=trial.value,
            params=dict(trial.configuration),
            distributions={name: distributions[name] for name in trial.configuration},
            intermediate_values=dict(trial.reports),
        )
        for trial in trials
        if trial.state in _OPTUNA_STATE
        and all(
            name in distributions and distributions[name]._contains(distributions[name].to_internal_repr(value))
            for name, value in trial.configuration.items()
        )
    ]
