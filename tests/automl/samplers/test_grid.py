"""A grid: each point once, on however many machines, and what becomes of points that fail."""

from typing import Any

import numpy as np
import pytest

from automl.executors.simulated import Measured, simulate
from automl.pruners.none import NoPruner
from automl.samplers.base import NothingLeftError
from automl.samplers.grid import GridSampler
from automl.scheduler import Done, Scheduler
from search_spaces.configuration import Configuration
from search_spaces.parameters import Categorical, Float, Integer
from search_spaces.space import SearchSpace
from studies.trial import TrialState
from tests.automl.conftest import Search
from tests.helpers.trials import make_trial

THREE = SearchSpace("three", {"x": Categorical(choices=(0, 1, 2))}, defaults={"x": 2})
EIGHT = SearchSpace("eight", {name: Categorical(choices=(0, 1)) for name in "abc"})


def scheduler(space: SearchSpace, **options: Any) -> Scheduler:
    return Scheduler(space=space, sampler=GridSampler("minimize", **options), pruner=NoPruner("minimize", 1), seed=0)


def loss(configuration: Configuration, number: int, epoch: int) -> Measured:
    return Measured(float(number))


@pytest.mark.parametrize("workers", [1, 4])
def test_each_point_is_tried_once_in_order(workers: int) -> None:
    found = simulate(scheduler(EIGHT), loss, workers=workers)
    points = [tuple(trial.configuration.values()) for trial in found.trials]
    assert points == sorted(points)
    assert len(set(points)) == 8
    assert found.reason == "grid done: 8 of 8 points"


def test_defaults_are_a_point_like_every_other() -> None:
    found = simulate(scheduler(THREE), loss)
    assert [trial.configuration["x"] for trial in found.trials] == [0, 1, 2]


def test_point_that_a_person_has_tried_is_not_tried_again() -> None:
    found = simulate(scheduler(THREE), loss, queued=[Configuration({"x": 1})])
    assert [trial.configuration["x"] for trial in found.trials] == [1, 0, 2]


def test_point_that_fails_once_is_tried_again_at_the_end() -> None:
    def first_fails(configuration: Configuration, number: int, epoch: int) -> Measured:
        return Measured(float("nan") if number == 0 else 1.0)

    found = simulate(scheduler(THREE), first_fails)
    assert [trial.configuration["x"] for trial in found.trials] == [0, 1, 2, 0]
    assert found.reason == "grid done: 3 of 3 points"


def test_points_without_a_value_are_named_at_the_end() -> None:
    def one_fails(configuration: Configuration, number: int, epoch: int) -> Measured:
        return Measured(float("nan") if configuration["x"] == 1 else 1.0)

    judge = scheduler(THREE)
    found = simulate(judge, one_fails)
    assert len(found.trials) == 4
    action = judge.next_action(found.trials, ())
    assert action == Done(reason="1 of 3 grid points have no value: x=1", lacks=True)


def test_what_cannot_be_trained_is_done_with() -> None:
    trials = [
        make_trial(0, {"x": 0}, state=TrialState.INFEASIBLE),
        make_trial(1, {"x": 1}, state=TrialState.FAILED, cause="oom"),
        make_trial(2, {"x": 2}, value=1.0),
    ]
    with pytest.raises(NothingLeftError, match="grid done: 3 of 3 points"):
        GridSampler("minimize").suggest(THREE, trials, np.random.default_rng(0))


def test_numbers_without_steps_have_a_few_values_on_their_scale() -> None:
    space = SearchSpace("fine", {"rate": Float(low=1e-4, high=1.0, log=True), "wide": Integer(low=1, high=1000)})
    found = simulate(scheduler(space), loss)
    rates = sorted({float(str(trial.configuration["rate"])) for trial in found.trials})
    np.testing.assert_allclose(rates, [1e-4, 1e-3, 1e-2, 1e-1, 1.0])
    assert len(found.trials) == 25
    few = simulate(scheduler(space, points=2), loss)
    assert {trial.configuration["wide"] for trial in few.trials} == {1, 1000}


def test_parameters_that_are_not_there_make_no_points() -> None:
    space = SearchSpace(
        "gate",
        {
            "operation": Categorical(choices=("conv", "pool")),
            "kernel": Integer(low=1, high=3, when={"operation": "conv"}),
        },
    )
    assert len(simulate(scheduler(space), loss).trials) == 4


def test_grid_without_end_is_refused_in_words() -> None:
    space = SearchSpace("huge", {f"x{at}": Integer(low=1, high=100) for at in range(4)})
    with pytest.raises(NothingLeftError, match="has 100,000,000 points, the most are 100,000"):
        GridSampler("minimize").suggest(space, (), np.random.default_rng(0))


def test_finished_study_runs_nothing_more_and_a_lacking_one_says_so(toy_search: Search) -> None:
    grid: dict[str, Any] = {"sampler": "grid", "sampler_option": {"points": 3}, "trials": 30}
    first = toy_search(**grid)
    assert (first.exit_code, first.reason) == (0, "grid done: 3 of 3 points")
    again = toy_search(**grid)
    assert (again.exit_code, len(again.study.trials())) == (0, 3)


def test_search_whose_grid_lacks_values_has_failed(toy_search: Search) -> None:
    outcome = toy_search(space="tests.helpers.failing_toy", sampler="grid", epochs=2, max_failures=99)
    assert outcome.exit_code == 1
    assert outcome.reason == "2 of 4 grid points have no value: x=0.25, mood=raise_0; x=0.5, mood=raise_0"
    assert [trial.state for trial in outcome.study.trials()].count(TrialState.FAILED) == 4
