"""What every sampler and every pruner owes to a whole search."""

from collections.abc import Iterator

import numpy as np
import pytest

from automl.randomness import suggestion_generator
from automl.registry import available
from automl.session import SearchOutcome
from studies.trial import TrialState
from tests.automl.conftest import Search
from tests.helpers.broken_toy import SPACE as BROKEN
from tests.helpers.toy import SPACE as TOY

SAMPLERS = available("sampler")
PRUNERS = available("pruner")
OPTIONS = {"threshold": {"upper": 100.0}}


def moods(outcome: SearchOutcome, state: TrialState) -> set[object]:
    return {trial.configuration["mood"] for trial in outcome.study.trials() if trial.state is state}


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_few_points_are_tried_once_each_and_then_the_search_ends(toy_search: Search, sampler: str) -> None:
    outcome = toy_search(space="tests.helpers.eight_toy", sampler=sampler, trials=24)
    trials = outcome.study.trials()
    assert sorted(float(str(trial.configuration["x"])) for trial in trials) == [n / 8 for n in range(8)]
    assert outcome.exit_code == 0
    assert "8 of 8" in outcome.reason


@pytest.mark.parametrize("pruner", PRUNERS)
def test_what_is_no_number_fails_at_once_whoever_judges(toy_search: Search, pruner: str) -> None:
    option = OPTIONS.get(pruner, {})
    outcome = toy_search(
        space="tests.helpers.broken_toy", pruner=pruner, pruner_option=option, trials=12, max_failures=99
    )
    failed = [trial for trial in outcome.study.trials() if trial.state is TrialState.FAILED]
    assert moods(outcome, TrialState.FAILED) == set(BROKEN.parameters["mood"].values()) - {"fine"}
    assert {(trial.cause, trial.last_epoch) for trial in failed} == {("non_finite", 0)}
    assert outcome.best is not None


@pytest.fixture
def _numpy_as_before() -> Iterator[None]:
    before = np.geterr()
    yield
    np.seterr(**before)


@pytest.mark.usefixtures("_numpy_as_before")
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_code_that_lets_numpy_raise_is_no_obstacle(toy_search: Search, sampler: str) -> None:
    """The trainings run in this very process."""
    option = {"points": 2} if sampler == "grid" else {}
    outcome = toy_search(space="tests.helpers.touchy_toy", sampler=sampler, sampler_option=option, trials=30, epochs=1)
    assert [trial.state for trial in outcome.study.trials()] == [TrialState.COMPLETE] * 30


@pytest.mark.parametrize(("upper", "survivors"), [(1.1, True), (0.0, False)])
def test_evolution_goes_on_from_trials_that_were_stopped(toy_search: Search, upper: float, survivors: bool) -> None:
    """Most, or all, are stopped at their first report, which is what is learned from; nothing is drawn any more."""
    outcome = toy_search(
        sampler="evolution", sampler_option={"population_size": 4}, pruner="threshold",
        pruner_option={"upper": upper, "warmup_epochs": 0}, trials=40, epochs=3, seed=0,
    )  # fmt: skip
    trials = outcome.study.trials()
    assert len(trials) == 40
    assert any(trial.state is TrialState.PRUNED for trial in trials)
    assert (outcome.best is not None) is survivors
    assert outcome.exit_code == (0 if survivors else 3)
    are_drawn = [trial.configuration == TOY.sample(suggestion_generator(0, trial.number)) for trial in trials]
    assert are_drawn == [True] * 4 + [False] * 36
