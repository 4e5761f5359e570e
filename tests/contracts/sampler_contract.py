"""What every sampler owes; a test class inherits this and gives the sampler's name."""

import pickle
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from automl.registry import sampler_class
from automl.samplers.base import Sampler
from search_spaces.configuration import Configuration
from search_spaces.parameters import Categorical, Float, Integer
from search_spaces.space import SearchSpace
from studies.trial import Trial, TrialState
from tests.helpers.trials import make_trial

__all__ = ["MIXED_SPACE", "SamplerContract", "history"]

MIXED_SPACE = SearchSpace(
    "mixed",
    {
        "learning_rate": Float(low=1e-5, high=1e-1, log=True),
        "momentum": Float(low=0.0, high=0.9, step=0.1),
        "layers": Integer(low=1, high=8),
        "width": Integer(low=8, high=512, log=True),
        "operation": Categorical(choices=("conv", "pool", None, True, 3), role="architecture"),
        "only": Categorical(choices=("one",), role="architecture"),
    },
)

DEPENDENT_SPACE = SearchSpace(
    "dependent",
    {
        "a": Integer(low=0, high=100),
        "b": Integer(low=0, high=100, at_most="100 - a"),
        "operation": Categorical(choices=("conv", "pool", "skip"), role="architecture"),
        "kernel": Integer(low=1, high=7, step=2, when={"operation": ("conv", "pool")}, role="architecture"),
        "groups": Categorical(choices=(1, 2), when={"operation": "conv", "kernel": (3, 5)}, role="architecture"),
        "rate": Float(low=1e-5, high=1e-1, log=True),
    },
)


def history(count: int, states: Sequence[TrialState] = (TrialState.COMPLETE,)) -> list[Trial]:
    rng = np.random.default_rng(1)
    trials = []
    for number in range(count):
        state = states[number % len(states)]
        value = float(rng.random())
        trials.append(
            make_trial(
                number,
                MIXED_SPACE.sample(rng),
                state=state,
                value=value if state is TrialState.COMPLETE else None,
                reports=[value] if state in (TrialState.COMPLETE, TrialState.PRUNED) else [],
                cause="oom" if state is TrialState.FAILED else None,
            )
        )
    return trials


class SamplerContract:
    """Laws for a sampler on every kind of history."""

    name: str
    long_search: int = 100
    """Trials of a long search, fewer for a method that takes its time."""

    @pytest.fixture(params=["maximize", "minimize"])
    def sampler(self, request: pytest.FixtureRequest) -> Sampler:
        return sampler_class(self.name)(request.param)

    @pytest.mark.parametrize(
        "trials",
        [
            history(0),
            history(1),
            history(40),
            history(40, list(TrialState)),
            history(15, [TrialState.FAILED]),
            history(15, [TrialState.INFEASIBLE]),
            history(15, [TrialState.PRUNED]),
            history(15, [TrialState.RUNNING]),
        ],
        ids=["empty", "one", "complete", "every-state", "failed", "infeasible", "pruned", "running"],
    )
    def test_suggestion_is_valid_and_repeatable(self, sampler: Sampler, trials: list[Trial]) -> None:
        first, again = (sampler.suggest(MIXED_SPACE, trials, np.random.default_rng(7)) for _ in range(2))
        assert isinstance(first, Configuration)
        assert MIXED_SPACE.validate(first) == first
        assert first == again

    def test_sampler_that_has_seen_a_study_grow_answers_as_a_new_one(self, sampler: Sampler) -> None:
        """Also one that comes from another process; results come late and out of order."""
        trials = history(30, list(TrialState))
        for count in range(1, 30, 4):
            sampler.suggest(MIXED_SPACE, trials[:count], np.random.default_rng(count))
        late = [
            replace(trial, state=TrialState.RUNNING, value=None, reports={}) if trial.number % 3 == 0 else trial
            for trial in trials
        ]
        sampler.suggest(MIXED_SPACE, late, np.random.default_rng(0))
        fresh, sent = sampler_class(self.name)(sampler.direction), pickle.loads(pickle.dumps(sampler))
        answers = {each.suggest(MIXED_SPACE, trials, np.random.default_rng(9)) for each in (sampler, fresh, sent)}
        assert len(answers) == 1

    def test_pending_trials_are_kept_away_from(self, sampler: Sampler) -> None:
        """Eight workers are given eight configurations, most of which the sampler itself makes differ."""
        trials = history(24)
        for number in range(24, 32):
            configuration = sampler.suggest(MIXED_SPACE, trials, np.random.default_rng(number))
            trials.append(make_trial(number, configuration, state=TrialState.RUNNING))
        assert len({Configuration(trial.configuration) for trial in trials[24:]}) >= 6

    def test_study_of_thousands_of_trials_is_no_obstacle(self, sampler: Sampler) -> None:
        trials = history(5000, [*list(TrialState), TrialState.COMPLETE, TrialState.COMPLETE])
        MIXED_SPACE.validate(sampler.suggest(MIXED_SPACE, trials, np.random.default_rng(0)))

    def test_equal_values_are_no_obstacle(self, sampler: Sampler) -> None:
        trials = [
            make_trial(number, MIXED_SPACE.sample(np.random.default_rng(number)), value=1.0) for number in range(20)
        ]
        MIXED_SPACE.validate(sampler.suggest(MIXED_SPACE, trials, np.random.default_rng(0)))

    def test_different_generators_explore(self, sampler: Sampler) -> None:
        if sampler.has_plan:
            pytest.skip("its proposals are planned")
        suggestions = {sampler.suggest(MIXED_SPACE, [], np.random.default_rng(seed)) for seed in range(10)}
        assert len(suggestions) == 10

    def test_arguments_stay_as_they_are(self, sampler: Sampler) -> None:
        trials = history(20)
        before = [(trial.number, dict(trial.configuration), trial.value) for trial in trials]
        sampler.suggest(MIXED_SPACE, trials, np.random.default_rng(0))
        assert before == [(trial.number, dict(trial.configuration), trial.value) for trial in trials]

    def test_trials_of_an_older_space_are_no_obstacle(self, sampler: Sampler) -> None:
        old = make_trial(0, {"gone": 1.0}, value=0.5)
        wide = make_trial(1, MIXED_SPACE.sample(np.random.default_rng(0)).replace(layers=99), value=0.5)
        MIXED_SPACE.validate(sampler.suggest(MIXED_SPACE, [old, wide, *history(20)[2:]], np.random.default_rng(0)))

    def test_conditions_and_bounds_hold_over_a_long_search(self, sampler: Sampler) -> None:
        trials: list[Trial] = []
        for number in range(self.long_search):
            configuration = sampler.suggest(DEPENDENT_SPACE, trials, np.random.default_rng(number))
            a, b, operation = (configuration[name] for name in ("a", "b", "operation"))
            assert isinstance(a, int)
            assert isinstance(b, int)
            assert a + b <= 100
            assert ("kernel" in configuration) == (operation != "skip")
            assert DEPENDENT_SPACE.validate(configuration) == configuration
            trials.append(make_trial(number, configuration, value=float(a - b)))
        keys = {DEPENDENT_SPACE.key(trial.configuration) for trial in trials}
        assert len(keys) > self.long_search // 2
