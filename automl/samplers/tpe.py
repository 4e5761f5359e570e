"""Optuna's tree-structured Parzen estimator on a snapshot in memory.

Source: Bergstra et al. 2011, "Algorithms for Hyper-Parameter Optimization", NeurIPS; multivariate form and constant
liar as in Optuna 5. The database is never asked: the snapshot becomes an in-memory Optuna study, so that the cost of
a suggestion has no SQL in it.
"""

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from automl.objective import is_infeasible
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
    # What rests may never go on, so that its last report counts as that of a pruned trial.
    TrialState.PAUSED: OptunaState.PRUNED,
}


MOST_INFEASIBLE_PER_LEARNED = 9
"""Infeasible trials that the estimator sees for each one with a result. It takes the best tenth of all as good ones, so
that with more of them infeasible trials would be among those."""


class TpeSampler(Sampler):
    """Models good and bad configurations by two densities and proposes where their ratio is highest.

    Running trials count as bad ones ("constant liar"), so that parallel proposals spread out. Once there is a model,
    configurations that were refused, or ran out of memory, violate a constraint, and count as bad ones, too.
    """

    def __init__(self, direction: Direction, *, startup_trials: int = 10) -> None:
        """Set the method's parameters.

        Args:
            direction: whether larger or smaller objectives are better.
            startup_trials: random trials with a result, or under way, before the first model, at least 1.

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
        learned, infeasible = _frozen_trials(trials, distributions), _frozen_infeasible(trials, distributions)
        seed, startup = int(rng.integers(2**31)), self.startup_trials
        results = sum(frozen.state is not OptunaState.RUNNING for frozen in learned)
        most = MOST_INFEASIBLE_PER_LEARNED * results if len(learned) >= startup else 0
        shown = infeasible[max(0, len(infeasible) - most) :]
        sampler = _estimator(seed, startup, space.is_conditional)
        storage = optuna.storages.InMemoryStorage()
        with without_chatter():
            study_id = storage.create_new_study([_optuna_direction(self.direction)], "snapshot")
        for frozen in (*learned, *shown):
            storage.create_new_trial(study_id, template_trial=frozen)
        study = optuna.load_study(study_name="snapshot", storage=storage, sampler=sampler)
        # The estimator knows no conditions and no dependent bounds: what must not be there is dropped.
        return space.complete(study.ask(dict(distributions)).params, rng)


def _estimator(seed: int, startup_trials: int, is_conditional: bool) -> optuna.samplers.TPESampler:
    """Optuna's estimator; where parameters are not always there, it models those together that occur together."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # groups, since 2021
        return optuna.samplers.TPESampler(seed=seed, n_startup_trials=startup_trials, group=is_conditional)


def _optuna_direction(direction: Direction) -> optuna.study.StudyDirection:
    return optuna.study.StudyDirection[direction.upper()]


def _frozen_trials(trials: Sequence[Trial], distributions: Mapping[str, BaseDistribution]) -> Sequence[FrozenTrial]:
    """The trials that TPE can learn from: their states are in the table and their values in the present ranges."""
    return [
        optuna.trial.create_trial(
            state=_optuna_state(trial),
            value=trial.value,
            params=dict(trial.configuration),
            distributions={name: distributions[name] for name in trial.configuration},
            intermediate_values=dict(trial.reports),
        )
        for trial in trials
        if trial.state in _OPTUNA_STATE and _is_within(trial, distributions)
    ]


def _optuna_state(trial: Trial) -> OptunaState:
    """A paused trial without a report is kept away from as a running one."""
    return OptunaState.RUNNING if trial.state is TrialState.PAUSED and not trial.reports else _OPTUNA_STATE[trial.state]


def _frozen_infeasible(trials: Sequence[Trial], distributions: Mapping[str, BaseDistribution]) -> list[FrozenTrial]:
    """The trials that cannot be trained, as Optuna's estimator takes them: ended, with a constraint above 0."""
    return [
        optuna.trial.create_trial(
            state=OptunaState.PRUNED,
            params=dict(trial.configuration),
            distributions={name: distributions[name] for name in trial.configuration},
            constraints={"infeasible": 1.0},
        )
        for trial in trials
        if is_infeasible(trial) and _is_within(trial, distributions)
    ]


def _is_within(trial: Trial, distributions: Mapping[str, BaseDistribution]) -> bool:
    return all(
        name in distributions and distributions[name]._contains(distributions[name].to_internal_repr(value))
        for name, value in trial.configuration.items()
    )
