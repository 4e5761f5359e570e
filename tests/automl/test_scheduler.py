import numpy as np
import pytest

from automl import scheduler as module
from automl.pruners.none import NoPruner
from automl.samplers.random import RandomSampler
from automl.scheduler import Done, Refuse, RejectQueued, Resume, Scheduler, Start, StartQueued, Wait
from search_spaces.configuration import Configuration
from search_spaces.parameters import Categorical, Float
from search_spaces.space import SearchSpace
from studies.trial import Trial, TrialState
from tests.helpers.trials import make_trial
from trainers.reporting import Decision

SPACE = SearchSpace("line", {"x": Float(low=0.0, high=1.0)})
SMALL = SearchSpace("small", {"a": Categorical(choices=(1, 2, 3)), "b": Categorical(choices=("u", "v"))})


def scheduler(space: SearchSpace = SPACE, budget: int = 10, seed: int = 0) -> Scheduler:
    return Scheduler(
        space=space, sampler=RandomSampler("maximize"), pruner=NoPruner("maximize", 9), budget=budget, seed=seed
    )


def test_scheduler_proposal_depends_on_seed_and_number_only() -> None:
    first = scheduler().next_action([], [])
    assert first == scheduler().next_action([], [])
    assert isinstance(first, Start) and first.number == 0
    second = scheduler().next_action([make_trial(0, value=0.1)], [])
    assert isinstance(second, Start) and second.number == 1
    assert second.configuration != first.configuration
    other = scheduler(seed=1).next_action([], [])
    assert isinstance(other, Start) and other.configuration != first.configuration


def test_scheduler_first_trial_has_the_defaults_of_the_space() -> None:
    known = SearchSpace("known", {"x": Float(low=0.0, high=1.0)}, defaults={"x": 0.25})
    first = scheduler(known).next_action([], [])
    assert isinstance(first, Start) and dict(first.configuration) == {"x": 0.25}
    second = scheduler(known).next_action([make_trial(0, {"x": 0.25}, value=0.1)], [])
    assert isinstance(second, Start) and second.configuration["x"] != 0.25


def test_scheduler_interrupted_trials_go_first_then_queued_ones() -> None:
    paused = make_trial(0, state=TrialState.PAUSED, reports=[0.1])
    queued = make_trial(1, {"x": 0.5}, state=TrialState.QUEUED)
    assert scheduler().next_action([paused, queued], [paused]) == Resume(trial=paused)
    started = StartQueued(trial=queued, configuration=Configuration({"x": 0.5}))
    assert scheduler().next_action([paused, queued], []) == started


def test_scheduler_queued_trial_is_completed_by_the_sampler() -> None:
    queued = make_trial(0, {"a": 2}, state=TrialState.QUEUED)
    action = scheduler(SMALL).next_action([queued], [])
    assert isinstance(action, StartQueued)
    assert action.configuration["a"] == 2
    assert action.configuration["b"] in ("u", "v")


def test_scheduler_queued_trial_that_cannot_be_trained_is_rejected_with_the_reason() -> None:
    wrong = make_trial(0, {"x": 7.0}, state=TrialState.QUEUED)
    action = scheduler().next_action([wrong], [])
    assert isinstance(action, RejectQueued) and "x=7.0" in action.reason
    nothing = SearchSpace("nothing", {"x": Float(low=0.0, high=1.0)}, refuse=lambda configuration: "no path")
    action = scheduler(nothing).next_action([make_trial(0, {"x": 0.5}, state=TrialState.QUEUED)], [])
    assert isinstance(action, RejectQueued) and action.reason == "no path"


@pytest.mark.parametrize("state", [s for s in TrialState if s.is_counted and s.is_ended])
def test_scheduler_ended_trials_spend_the_budget(state: TrialState) -> None:
    trials = [make_trial(n, state=state) for n in range(10)]
    assert scheduler(budget=10).next_action(trials, []) == Done(reason="all 10 trials ended")


@pytest.mark.parametrize("state", [TrialState.RUNNING, TrialState.PAUSED])
def test_scheduler_unfinished_trials_hold_their_place(state: TrialState) -> None:
    trials = [make_trial(n, value=0.0) for n in range(9)] + [make_trial(9, state=state)]
    assert scheduler(budget=10).next_action(trials, []) == Wait()


@pytest.mark.parametrize("state", [TrialState.INFEASIBLE, TrialState.QUEUED])
def test_scheduler_refused_and_queued_trials_are_not_counted(state: TrialState) -> None:
    trials = [make_trial(n, value=0.0) for n in range(9)] + [make_trial(9, state=state)]
    assert isinstance(scheduler(budget=10).next_action(trials, []), Start | StartQueued)


def test_scheduler_finite_space_is_tried_once_each_and_then_exhausted() -> None:
    trials: list[Trial] = []
    for number in range(6):
        action = scheduler(SMALL, budget=99).next_action(trials, [])
        assert isinstance(action, Start)
        trials.append(make_trial(number, dict(action.configuration), value=0.0))
    assert len({Configuration(trial.configuration) for trial in trials}) == 6
    action = scheduler(SMALL, budget=99).next_action(trials, [])
    assert action == Done(reason="search space exhausted: 6 of 6 tried")


def test_scheduler_infeasible_proposals_are_refused_and_end_the_search_when_nothing_else_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_REFUSALS_IN_A_ROW", 5)
    nothing = SearchSpace("nothing", {"x": Float(low=0.0, high=1.0)}, refuse=lambda configuration: "no path")
    trials: list[Trial] = []
    for number in range(5):
        action = scheduler(nothing).next_action(trials, [])
        assert isinstance(action, Refuse) and action.reason == "no path" and action.number == number
        trials.append(make_trial(number, dict(action.configuration), state=TrialState.INFEASIBLE))
    last = scheduler(nothing).next_action(trials, [])
    assert isinstance(last, Done) and "infeasible" in last.reason


def test_scheduler_last_epoch_is_never_pruned() -> None:
    class StopAll(NoPruner):
        def decide(self, trial: Trial, trials: object) -> Decision:
            return Decision.STOP

    judge = Scheduler(space=SPACE, sampler=RandomSampler("maximize"), pruner=StopAll("maximize", 3), budget=1, seed=0)
    assert judge.decide(make_trial(0, state=TrialState.RUNNING, reports=[0.1, 0.1]), []) is Decision.STOP
    assert judge.decide(make_trial(0, state=TrialState.RUNNING, reports=[0.1] * 3), []) is Decision.CONTINUE


def test_training_seeds_differ_between_trials_and_studies() -> None:
    from automl.randomness import suggestion_generator, training_seed

    seeds = {training_seed(study, number) for study in range(20) for number in range(50)}
    assert len(seeds) == 1000
    assert all(0 <= seed < 2**31 for seed in seeds)
    draws = {float(suggestion_generator(study, number).random()) for study in range(20) for number in range(50)}
    assert len(draws) == 1000
    assert isinstance(suggestion_generator(0, 0), np.random.Generator)
