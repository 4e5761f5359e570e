"""Our samplers for plain Optuna programs: `optuna.create_study(sampler=as_optuna("surrogate_evolution"))`."""

import threading
from collections.abc import Mapping, Sequence
from secrets import randbits
from typing import Any
from zlib import crc32

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from automl.plugin_options import make_sampler
from automl.randomness import suggestion_generator
from automl.samplers.base import NothingLeftError, Sampler
from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.parameters import Categorical, Float, Integer, Parameter
from search_spaces.space import SearchSpace
from studies.trial import Trial, TrialState
from trainers.config import Direction

__all__ = ["OptunaAdapter"]

MOST_REPEATS = 50
"""Proposals for one trial that were tried already before one of them is taken all the same."""
_INDEPENDENT = 3
_PROPOSED = "automl:proposed"
"""The attribute of a running trial with what was proposed for it, for those that are asked before it has said so."""

_STATES = {
    OptunaState.COMPLETE: TrialState.COMPLETE,
    OptunaState.PRUNED: TrialState.PRUNED,
    OptunaState.RUNNING: TrialState.RUNNING,
    OptunaState.FAIL: TrialState.FAILED,
}


class OptunaAdapter(optuna.samplers.BaseSampler):
    """One of our samplers as one of Optuna's.

    The parameters that all ended trials have are proposed together; others, and those of the first trial, are drawn.
    Trials with a violated constraint count as those that cannot be trained.
    """

    def __init__(self, name: str, *, seed: int | None = None, **options: JsonScalar) -> None:
        """Choose the sampler.

        Args:
            name: as for `automl search --sampler`.
            seed: of all proposals, with each trial's number; None: a random one.
            options: settings of the sampler.

        Raises:
            UnknownPluginError: there is no such sampler.
            ValueError: a setting is unknown, its value is not allowed, or it needs networks.
        """
        self._name, self._options = name, dict(options)
        self._seed = randbits(63) if seed is None else seed
        if (score := make_sampler(name, "minimize", options).scored_by) is not None:
            raise ValueError(f"{name} would score networks by {score}, but Optuna's trials show none; leave that out")
        self._views: dict[tuple[int, int], _View] = {}
        self._asked = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is found anew."""
        return {"_name": self._name, "_options": self._options, "_seed": self._seed}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state, _views={}, _asked=threading.Lock())

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Refuse a study that it cannot search.

        Raises:
            ValueError: the study has several objectives.
        """
        if len(study.directions) != 1:
            raise ValueError(f"the sampler {self._name} has one objective, the study has {len(study.directions)}")

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters that all ended trials have, but for those with one value."""
        shared = optuna.search_space.intersection_search_space(_trials(study), include_pruned=True)
        return {name: distribution for name, distribution in shared.items() if not distribution.single()}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Ask our sampler, which sees all trials that have these parameters."""
        if not search_space:
            return {}
        with self._asked:  # threads of one program share the sampler's memory
            view = self._view(study)
            proposal = view.proposal(search_space, _trials(study), trial.number, self._seed)
            if proposal is None:
                _stop(study, view.reason)
                return {}
            study._storage.set_trial_system_attr(trial._trial_id, _PROPOSED, dict(proposal))
        return dict(proposal)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Draw one parameter."""
        own = np.random.SeedSequence(self._seed, spawn_key=(trial.number, _INDEPENDENT, crc32(param_name.encode())))
        return _parameter(param_name, param_distribution).sample(np.random.default_rng(own))

    def _view(self, study: optuna.Study) -> "_View":
        direction: Direction = "maximize" if study.direction is optuna.study.StudyDirection.MAXIMIZE else "minimize"
        known = self._views.get((id(study._storage), study._study_id))
        if known is None or known.sampler.direction != direction:
            known = _View(make_sampler(self._name, direction, self._options))
            self._views[id(study._storage), study._study_id] = known
        return known


class _View:
    """A study of Optuna's as our sampler sees it, which reads each ended trial once."""

    def __init__(self, sampler: Sampler) -> None:
        self.sampler = sampler
        self.reason = ""
        self._known: dict[int, tuple[FrozenTrial, Trial | None]] = {}
        self._space: SearchSpace | None = None
        self._distributions: Mapping[str, BaseDistribution] = {}

    def proposal(
        self, distributions: Mapping[str, BaseDistribution], trials: Sequence[FrozenTrial], number: int, seed: int
    ) -> Configuration | None:
        """What to try next; None: nothing any more, for the reason that is kept."""
        if self._space is None or distributions != self._distributions:
            self._distributions, self._known = dict(distributions), {}
            self._space = SearchSpace("optuna", {name: _parameter(name, each) for name, each in distributions.items()})
        space = self._space
        seen = [read for each in trials if each.number != number and (read := self._read(each, space)) is not None]
        tried = {space.key(trial.configuration) for trial in seen}
        rng = suggestion_generator(seed, number)
        try:
            for _ in range(MOST_REPEATS):
                proposal = self.sampler.suggest(space, seen, rng)
                if space.key(proposal) not in tried or self.sampler.may_repeat(seen):
                    break
        except NothingLeftError as error:
            self.reason = str(error)
            return None
        return proposal

    def _read(self, trial: FrozenTrial, space: SearchSpace) -> Trial | None:
        """The trial as one of ours; None: it lacks a parameter, has not begun, or has a value outside the ranges."""
        of, known = self._known.get(trial._trial_id, (None, None))
        if of is not trial or not trial.state.is_finished():
            known = _as_ours(trial, space)
            self._known[trial._trial_id] = (trial, known)
        return known


def _as_ours(trial: FrozenTrial, space: SearchSpace) -> Trial | None:
    has = {**trial.system_attrs.get(_PROPOSED, {}), **trial.params}
    is_of_space = all(name in has and each.problem(has[name]) is None for name, each in space.parameters.items())
    if trial.state not in _STATES or not is_of_space:
        return None
    is_refused = any(violation > 0.0 for violation in trial.constraints.values())
    return Trial(
        id=trial._trial_id,
        number=trial.number,
        state=TrialState.INFEASIBLE if is_refused else _STATES[trial.state],
        configuration=space.validate({name: has[name] for name in space.parameters}),
        reports=dict(sorted(trial.intermediate_values.items())),
        value=trial.value if trial.state is OptunaState.COMPLETE and not is_refused else None,
        owner="optuna" if trial.state is OptunaState.RUNNING else None,
    )


def _trials(study: optuna.Study) -> list[FrozenTrial]:
    return study.get_trials(deepcopy=False)


def _stop(study: optuna.Study, reason: str) -> None:
    """End `study.optimize`; where a program asks by itself, it is told.

    Raises:
        NothingLeftError: the study is not being optimized.
    """
    try:
        study.stop()
    except RuntimeError:
        raise NothingLeftError(reason) from None


def _parameter(name: str, distribution: BaseDistribution) -> Parameter:
    if isinstance(distribution, FloatDistribution):
        return Float(low=distribution.low, high=distribution.high, log=distribution.log, step=distribution.step)
    if isinstance(distribution, IntDistribution):
        return Integer(low=distribution.low, high=distribution.high, log=distribution.log, step=distribution.step)
    if isinstance(distribution, CategoricalDistribution):
        return Categorical(choices=distribution.choices)
    raise ValueError(f"{name}: {type(distribution).__name__} is no float, integer or choice")
