from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from automl import scheduler as module
from automl.pruners.none import NoPruner
from automl.registry import sampler_class
from automl.samplers.base import Sampler
from automl.samplers.random import RandomSampler
from automl.scheduler import Done, Refuse, RejectQueued, Resume, Scheduler, Start, StartQueued, Wait
from search_spaces.configuration import Configuration
from search_spaces.parameters import Categorical, Float, Integer, Parameter
from search_spaces.space import SearchSpace
from studies.trial import Trial, TrialState
from tests.helpers.trials import make_trial
from trainers.reporting import Decision

SPACE = SearchSpace("line", {"x": Float(low=0.0, high=1.0)})
SMALL = SearchSpace("small", {"a": Categorical(choices=(1, 2, 3)), "b": Categorical(choices=("u", "v"))})


def scheduler(space: SearchSpace = SPACE, seed: int = 0) -> Scheduler:
    return Scheduler(space=space, sampler=RandomSampler("maximize"), pruner=NoPruner("maximize", 9), seed=seed)


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


def test_scheduler_queued_trial_is_completed_so_that_it_can_be_trained() -> None:
    picky = SearchSpace(
        "picky",
        {"a": Categorical(choices=(1, 2)), "b": Integer(low=1, high=20)},
        refuse=lambda configuration: None if configuration["b"] == 7 else "b is not 7",
    )
    for number in range(5):
        action = scheduler(picky, seed=number).next_action([make_trial(0, {"a": 2}, state=TrialState.QUEUED)], [])
        if isinstance(action, StartQueued):
            assert action.configuration == {"a": 2, "b": 7}
        else:
            assert isinstance(action, RejectQueued) and action.reason == "b is not 7"


def test_scheduler_imported_configuration_was_not_tried_here() -> None:
    imported = [
        replace(make_trial(n, {"a": a, "b": b}, value=0.0), is_imported=True)
        for n, (a, b) in enumerate((a, b) for a in (1, 2, 3) for b in ("u", "v"))
    ]
    action = scheduler(SMALL).next_action(imported, [], 1)
    assert isinstance(action, Start) and action.number == 6


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
    assert scheduler().next_action(trials, [], 10) == Done(reason="all 10 trials ended")


def test_scheduler_does_not_wait_for_a_trial_that_another_program_runs() -> None:
    foreign = replace(make_trial(9, state=TrialState.RUNNING), owner=None, attempt=0)
    trials = [*(make_trial(n, value=0.0) for n in range(9)), foreign]
    done = scheduler().next_action(trials, [], 10)
    assert done == Done(reason="all 10 trials ended, but for 9, which another program runs")
    ours = replace(make_trial(8, state=TrialState.RUNNING))
    assert scheduler().next_action([*trials[:8], ours, foreign], [], 10) == Wait()


@pytest.mark.parametrize("state", [TrialState.RUNNING, TrialState.PAUSED])
def test_scheduler_unfinished_trials_hold_their_place(state: TrialState) -> None:
    trials = [make_trial(n, value=0.0) for n in range(9)] + [make_trial(9, state=state)]
    assert scheduler().next_action(trials, [], 10) == Wait()


@pytest.mark.parametrize("state", [TrialState.INFEASIBLE, TrialState.QUEUED])
def test_scheduler_refused_and_queued_trials_are_not_counted(state: TrialState) -> None:
    trials = [make_trial(n, value=0.0) for n in range(9)] + [make_trial(9, state=state)]
    assert isinstance(scheduler().next_action(trials, [], 10), Start | StartQueued)


def test_scheduler_finite_space_is_tried_once_each_and_then_exhausted() -> None:
    trials: list[Trial] = []
    for number in range(6):
        action = scheduler(SMALL).next_action(trials, [])
        assert isinstance(action, Start)
        trials.append(make_trial(number, dict(action.configuration), value=0.0))
    assert len({Configuration(trial.configuration) for trial in trials}) == 6
    action = scheduler(SMALL).next_action(trials, [])
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


@pytest.mark.parametrize("rule", ["canonical", "refuse"])
def test_scheduler_refuses_what_the_own_code_of_a_space_fails_with(rule: str) -> None:
    def fails(configuration: Configuration) -> Any:
        raise KeyError("zz")

    line: dict[str, Parameter] = {"x": Float(low=0.0, high=1.0)}
    canonical = SearchSpace("own", line, canonical=fails)
    own = canonical if rule == "canonical" else SearchSpace("own", line, refuse=fails)
    refused = scheduler(own).next_action([], [])
    assert isinstance(refused, Refuse)
    assert f"its `{rule}` raises KeyError: 'zz'" in refused.reason
    infeasible = make_trial(0, refused.configuration, state=TrialState.INFEASIBLE)
    assert isinstance(scheduler(own).next_action([infeasible], []), Refuse)


def test_scheduler_ends_where_no_draw_finds_a_configuration() -> None:
    odd = Integer(low=1, high=9, step=2, at_least="a", at_most="a")
    parity = SearchSpace("parity", {"a": Integer(low=0, high=8, step=2), "b": odd, "x": Float(low=0.0, high=1.0)})
    action = scheduler(parity).next_action([], [])
    assert isinstance(action, Done)
    assert action.reason.startswith("no configuration was found: b has no value left")


def test_scheduler_last_epoch_is_never_pruned() -> None:
    class StopAll(NoPruner):
        def decide(self, trial: Trial, trials: object) -> Decision:
            return Decision.STOP

    judge = Scheduler(space=SPACE, sampler=RandomSampler("maximize"), pruner=StopAll("maximize", 3), seed=0)
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


OLD = SearchSpace("cell", {"operation": Categorical(choices=("conv3", "skip")), "x": Float(low=0.0, high=1.0)})
NEW = SearchSpace(
    "cell",
    {"operation": Categorical(choices=("conv3", "avg")), "depth": Integer(low=1, high=3)},
    defaults={"operation": "conv3", "depth": 2},
)


class RecordingSampler(RandomSampler):
    """Keeps what it was shown."""

    seen: Sequence[Trial] = ()

    def suggest(self, space: SearchSpace, trials: Sequence[Trial], rng: np.random.Generator) -> Configuration:
        self.seen = trials
        return super().suggest(space, trials, rng)


def after_the_change(sampler: Sampler, space: SearchSpace = NEW) -> Scheduler:
    return Scheduler(space=space, sampler=sampler, pruner=NoPruner("maximize", 9), seed=0, earlier=[OLD])


def test_scheduler_sampler_sees_old_trials_as_the_present_space_writes_them() -> None:
    sampler = RecordingSampler("maximize")
    fits, unfit, foreign, present = (
        make_trial(0, {"operation": "conv3", "x": 0.3}, value=0.5),
        make_trial(1, {"operation": "skip", "x": 0.3}, value=0.9),
        make_trial(2, {"width": 3}, value=0.9),
        make_trial(3, {"operation": "avg", "depth": 3}, state=TrialState.RUNNING, reports=[0.1]),
    )
    before = [dict(trial.configuration) for trial in (fits, unfit, foreign, present)]
    action = after_the_change(sampler).next_action([fits, unfit, foreign, present], [])
    assert isinstance(action, Start) and action.number == 4
    assert list(sampler.seen) == [
        replace(fits, configuration=Configuration({"operation": "conv3", "depth": 2})),
        present,
    ]
    assert before == [dict(trial.configuration) for trial in (fits, unfit, foreign, present)]


def test_scheduler_reads_a_trial_again_when_it_has_changed() -> None:
    sampler = RecordingSampler("maximize")
    judge = after_the_change(sampler)
    running = make_trial(0, {"operation": "conv3", "x": 0.3}, state=TrialState.RUNNING)
    judge.next_action([running], [])
    complete = make_trial(0, {"operation": "conv3", "x": 0.3}, value=0.5)
    judge.next_action([complete], [])
    assert [(trial.state, trial.value) for trial in sampler.seen] == [(TrialState.COMPLETE, 0.5)]


@pytest.mark.parametrize("name", ["random", "tpe", "evolution"])
def test_scheduler_goes_on_with_every_sampler_after_a_change(name: str) -> None:
    rng = np.random.default_rng(0)
    trials = [make_trial(number, OLD.sample(rng), value=float(number), reports=[1.0]) for number in range(25)]
    wide = SearchSpace("cell", {"operation": NEW.parameters["operation"], "x": Float(low=-1.0, high=2.0)})
    action = after_the_change(sampler_class(name)("maximize"), wide).next_action(trials, [])
    assert isinstance(action, Start) and action.number == 25
    assert wide.validate(action.configuration) == action.configuration


def test_scheduler_old_trials_count_as_tried_where_they_fit() -> None:
    tried = [make_trial(0, {"operation": "conv3", "x": 0.3}, value=0.5), make_trial(1, {"operation": "skip", "x": 0.3})]
    proposed = set()
    for number in range(2, 7):
        action = after_the_change(RandomSampler("maximize")).next_action(tried, [])
        assert isinstance(action, Start) and action.number == number
        proposed.add(action.configuration)
        tried.append(make_trial(number, action.configuration, value=0.0))
    assert Configuration({"operation": "conv3", "depth": 2}) not in proposed
    assert len(proposed) == 5
    last = after_the_change(RandomSampler("maximize")).next_action(tried, [])
    assert last == Done(reason="search space exhausted: 6 of 6 tried")


def test_scheduler_queued_trial_of_an_older_space_is_completed_or_rejected_with_the_reason() -> None:
    judge = after_the_change(RandomSampler("maximize"))
    fits = make_trial(0, {"operation": "conv3", "x": 0.3}, state=TrialState.QUEUED)
    action = judge.next_action([fits], [])
    assert isinstance(action, StartQueued)
    assert action.configuration["operation"] == "conv3" and action.configuration.keys() == NEW.parameters.keys()
    unfit = make_trial(0, {"operation": "skip", "x": 0.3}, state=TrialState.QUEUED)
    action = judge.next_action([unfit], [])
    assert isinstance(action, RejectQueued) and "operation='skip' is not allowed" in action.reason
    unknown = make_trial(0, {"operation": "conv3", "dpeth": 2}, state=TrialState.QUEUED)
    action = judge.next_action([unknown], [])
    assert isinstance(action, RejectQueued) and "did you mean 'depth'" in action.reason


def test_scheduler_half_a_queued_trial_is_no_known_configuration() -> None:
    sampler = RecordingSampler("maximize")
    queued = make_trial(0, {"operation": "conv3"}, state=TrialState.QUEUED)
    after_the_change(sampler).next_action([queued], [])
    assert list(sampler.seen) == []


def test_scheduler_interrupted_trial_goes_on_with_its_own_configuration() -> None:
    paused = make_trial(0, {"operation": "skip", "x": 0.3}, state=TrialState.PAUSED, reports=[0.1])
    assert after_the_change(RandomSampler("maximize")).next_action([paused], [paused]) == Resume(trial=paused)


def test_scheduler_pruner_sees_trials_that_no_longer_fit() -> None:
    class Recording(NoPruner):
        seen: Sequence[Trial] = ()

        def decide(self, trial: Trial, trials: Sequence[Trial]) -> Decision:
            type(self).seen = trials
            return Decision.CONTINUE

    judge = replace(after_the_change(RandomSampler("maximize")), pruner=Recording("maximize", 9))
    trials = [make_trial(0, {"operation": "skip", "x": 0.3}, value=0.5), make_trial(1, state=TrialState.RUNNING)]
    judge.decide(trials[1], trials)
    assert list(Recording.seen) == trials


class Stubborn(Sampler):
    """Proposes the same configuration for ever."""

    def suggest(self, space: SearchSpace, trials: Sequence[Trial], rng: np.random.Generator) -> Configuration:
        return Configuration({"x": 0.5})


def test_scheduler_configuration_that_was_tried_is_not_tried_again_by_itself() -> None:
    stubborn = Scheduler(space=SPACE, sampler=Stubborn("maximize"), pruner=NoPruner("maximize", 9), seed=0)
    for cause in ("user_error", "oom"):
        action = stubborn.next_action([make_trial(0, {"x": 0.5}, state=TrialState.FAILED, cause=cause)], [])
        assert isinstance(action, Start)
        assert action.configuration["x"] != 0.5


def test_scheduler_asks_the_search_too_what_cannot_be_trained() -> None:
    def refuse(configuration: Configuration) -> str | None:
        return "too large" if float(str(configuration["x"])) > 0.5 else None

    known = SearchSpace("known", {"x": Float(low=0.0, high=1.0)}, defaults={"x": 0.75})
    strict = replace(scheduler(known), refuse=refuse)
    first = strict.next_action([], [])
    assert isinstance(first, Refuse) and first.reason == "too large"
    queued = make_trial(0, {"x": 0.75}, state=TrialState.QUEUED)
    assert strict.next_action([queued], []) == RejectQueued(trial=queued, reason="too large")
    refused = make_trial(0, {"x": 0.75}, state=TrialState.INFEASIBLE)
    actions = [replace(strict, seed=seed).next_action([refused], []) for seed in range(20)]
    assert {type(action) for action in actions} == {Start, Refuse}
    for action in actions:
        assert isinstance(action, Start | Refuse)
        assert isinstance(action, Refuse) == (float(str(action.configuration["x"])) > 0.5)
