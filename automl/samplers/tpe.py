"""Optuna's tree-structured Parzen estimator on a snapshot in memory.

Source: Bergstra et al. 2011, "Algorithms for Hyper-Parameter Optimization", NeurIPS; multivariate form and constant
liar as in Optuna 5. The database is never asked: the snapshot becomes an Optuna study in memory, of bounded length, so
that the cost of a suggestion has no SQL in it and does not grow without end.
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
from automl.samplers.optuna_snapshot import BoundedHistory, FrozenTrials, frozen
from search_spaces.configuration import Configuration
from search_spaces.space import SearchSpace
from studies.optuna_in_memory import study_of
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
        self._history = BoundedHistory(direction)
        self._learned = FrozenTrials(_frozen)
        self._infeasible = FrozenTrials(_frozen_infeasible)

    def suggest(self, space: SearchSpace, trials: Sequence[Trial], rng: np.random.Generator) -> Configuration:
        """Ask Optuna's sampler, seeded from `rng`, on a study that holds the snapshot."""
        distributions, shown = space.distributions(), self._history(trials)
        learned, infeasible = self._learned(shown, distributions), self._infeasible(shown, distributions)
        seed, startup = int(rng.integers(2**31)), self.startup_trials
        results = sum(frozen.state is not OptunaState.RUNNING for frozen in learned)
        most = MOST_INFEASIBLE_PER_LEARNED * results if len(learned) >= startup else 0
        avoided = infeasible[max(0, len(infeasible) - most) :]
        seen = [*learned, *avoided]
        shared = None if space.is_conditional else _shared(seen, distributions)
        study = study_of(seen, self.direction, _estimator(seed, startup, shared))
        # The estimator knows no conditions and no dependent bounds: what must not be there is dropped.
        return space.complete(study.ask(dict(distributions)).params, rng)


class _Estimator(optuna.samplers.TPESampler):
    """Optuna's estimator, which is told the parameters that all trials share: it spends half its time on finding out.

    Where parameters are not always there, it models those together that occur together, and is told nothing.
    """

    def __init__(self, shared: dict[str, BaseDistribution] | None, *, seed: int, startup_trials: int) -> None:
        super().__init__(seed=seed, n_startup_trials=startup_trials, group=shared is None)
        self._shared = shared

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return super().infer_relative_search_space(study, trial) if self._shared is None else self._shared


def _estimator(seed: int, startup_trials: int, shared: dict[str, BaseDistribution] | None) -> _Estimator:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # groups, since 2021
        return _Estimator(shared, seed=seed, startup_trials=startup_trials)


def _shared(seen: Sequence[FrozenTrial], distributions: Mapping[str, BaseDistribution]) -> dict[str, BaseDistribution]:
    """What Optuna's intersection of search spaces would find, in its order; trials hold these very distributions."""
    ended = [frozen for frozen in seen if frozen.state.is_finished()]
    names = sorted(set(distributions).intersection(*(frozen.params for frozen in ended))) if ended else ()
    return {name: distributions[name] for name in names if not distributions[name].single()}


def _frozen(trial: Trial, distributions: Mapping[str, BaseDistribution]) -> FrozenTrial | None:
    """A trial that TPE can learn from: its state is in the table and its values in the present ranges."""
    if trial.state not in _OPTUNA_STATE:
        return None
    facts = {"value": trial.value, "intermediate_values": dict(trial.reports)}
    return frozen(trial, distributions, _optuna_state(trial), **facts)


def _optuna_state(trial: Trial) -> OptunaState:
    """A paused trial without a report is kept away from as a running one."""
    return OptunaState.RUNNING if trial.state is TrialState.PAUSED and not trial.reports else _OPTUNA_STATE[trial.state]


def _frozen_infeasible(trial: Trial, distributions: Mapping[str, BaseDistribution]) -> FrozenTrial | None:
    """A trial that cannot be trained, as Optuna's estimator takes it: ended, with a constraint above 0."""
    if not is_infeasible(trial):
        return None
    return frozen(trial, distributions, OptunaState.PRUNED, constraints={"infeasible": 1.0})
