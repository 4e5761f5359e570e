"""Methods side by side: equal seeds, courses that say what was found when, and means that are what they say."""

import math

import numpy as np
import pytest

from automl.errors import InvalidSpecError
from automl.executors.simulated import Happening, Measured, Simulation
from automl.simulation.comparison import Budget, checkpoints, compare, means_at
from automl.simulation.courses import course_of
from automl.simulation.methods import Method, methods_named
from automl.simulation.problems import Problem, by_curves
from automl.simulation.statistics import mean_interval
from search_spaces.configuration import Configuration
from studies.trial import Trial, TrialState
from tests.helpers.toy import SPACE, loss_after

EPOCHS = 9


def curve(configuration: Configuration, number: int) -> list[Measured]:
    x = configuration["x"]
    assert isinstance(x, float)
    return [Measured(loss_after(epoch, x)) for epoch in range(1, EPOCHS + 1)]


TOY = Problem(
    name="toy", space=SPACE, metric="loss", direction="minimize", epochs=EPOCHS, measure=lambda seed: by_curves(curve)
)
ALL = methods_named("random,evolution:population_size=4", "none,asha,asha_promote", "minimize", EPOCHS)


def test_methods_are_all_pairs_with_their_options() -> None:
    assert [method.name for method in ALL[:2]] == ["random + none", "random + asha"]
    assert len(ALL) == 6
    found = methods_named("evolution:population_size=7", "tests.helpers.pruners:Halving,asha:eta=4", "minimize", 9)
    sampler, pruner = found[0].make_sampler("minimize"), found[1].make_pruner("minimize", 9)
    assert getattr(sampler, "population_size", None) == 7
    assert getattr(pruner, "eta", None) == 4
    assert type(found[0].make_pruner("minimize", 9)).__name__ == "Halving"


def test_all_mistakes_of_the_methods_are_told() -> None:
    with pytest.raises(InvalidSpecError) as error:
        methods_named("rendom,evolution:population_size=-3", "asha:etta=3", "minimize", 9)
    for words in ("3 mistakes", "did you mean 'random'?", "population_size=-3", "did you mean 'eta'?"):
        assert words in str(error.value)


def test_searches_repeat_and_differ_by_their_seeds() -> None:
    budget = Budget(workers=4, trials=12)
    first, again = (compare(TOY, ALL, budget, range(3)) for _ in range(2))
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one.bests, other.bests)
    assert len(set(first[0].bests)) == 3
    assert np.array_equal(compare(TOY, ALL[:1], budget, [2])[0].bests, first[0].bests[2:])


@pytest.mark.parametrize("workers", [1, 5])
def test_best_so_far_never_becomes_worse_and_ends_at_the_best(workers: int) -> None:
    for one in compare(TOY, ALL, Budget(workers=workers, trials=15), range(2)):
        for course, best in zip(one.courses, one.bests, strict=True):
            along = course.at_times(np.linspace(0.0, course.seconds, 50))
            known = along[~np.isnan(along)]
            assert np.all(np.diff(known) <= 0.0)
            assert known[-1] == course.at_tried([15])[0] <= best
            assert course.count == 15
            assert math.isnan(course.at_times([0.5])[0]), "nothing was reported yet"


def test_course_counts_those_that_rest_and_leaves_out_those_that_fail() -> None:
    states = (TrialState.COMPLETE, TrialState.FAILED, TrialState.PRUNED)
    trials = tuple(
        Trial(
            id=number,
            number=number,
            state=state,
            configuration={},
            reports={1: 0.5},
            value=0.5 if number == 0 else None,
        )
        for number, state in enumerate(states)
    )
    happenings = (
        Happening(1.0, 1, 1, 0.1, TrialState.RUNNING),
        Happening(2.0, 2, 1, 0.6, TrialState.PAUSED),
        Happening(3.0, 1, 1, 0.1, TrialState.FAILED),
        Happening(4.0, 0, 1, 0.5, TrialState.COMPLETE),
        Happening(4.0, 2, 1, 0.6, TrialState.PRUNED),
    )
    course = course_of(Simulation(trials=trials, happenings=happenings, seconds=4.0, reason="done"), "minimize")
    assert list(course.tried) == [0, 1, 2, 3, 3]
    assert course.best == trials[0]
    assert list(course.at_times([2.0, 3.9, 4.0])) == [0.6, 0.6, 0.5]
    assert list(course.at_tried([1, 3])) == [0.6, 0.5]


def test_maximizing_is_minimizing_the_negative() -> None:
    def negative(configuration: Configuration, number: int) -> list[Measured]:
        return [Measured(-one.value) for one in curve(configuration, number)]

    other = Problem(
        name="toy", space=SPACE, metric="score", direction="maximize", epochs=EPOCHS,
        measure=lambda seed: by_curves(negative),
    )  # fmt: skip
    budget = Budget(trials=12)
    for one, mirrored in zip(compare(TOY, ALL, budget, [0]), compare(other, ALL, budget, [0]), strict=True):
        assert np.array_equal(one.bests, -mirrored.bests)
    base, better = compare(TOY, ALL[:2], budget, range(4))
    assert np.array_equal(better.better_than(base, TOY), base.bests - better.bests)


def test_means_at_places_are_the_means_of_the_searches() -> None:
    found = compare(TOY, ALL[:2], Budget(workers=2, trials=10), range(5))
    places = checkpoints(found, "trials")
    assert places == [2.0, 5.0, 10.0]
    mean = means_at(found[0].courses, "trials", places)[-1]
    assert mean is not None
    assert mean == mean_interval([course.at_tried([10])[0] for course in found[0].courses])
    assert means_at(found[0].courses, "seconds", [0.0]) == [None]


def test_interval_holds_the_mean_and_shrinks_with_more_runs() -> None:
    values = np.random.default_rng(0).normal(3.0, 1.0, size=400)
    few, many = mean_interval(values[:20]), mean_interval(values)
    assert few.low < few.mean < few.high
    assert many.high - many.low == pytest.approx(4 * 1.96 / 400**0.5 / 2, rel=0.2)
    assert mean_interval([2.0]) == mean_interval([2.0, 2.0])
    assert many.excludes_zero


def test_method_is_built_anew_for_each_search() -> None:
    method = Method(sampler="random", pruner="asha_promote")
    assert method.make_pruner("minimize", 9) is not method.make_pruner("minimize", 9)
