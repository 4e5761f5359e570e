"""Simulated searches: equal to real ones where they can be compared, and true to their own clock."""

import math
from collections import Counter
from collections.abc import Sequence

import pytest

from automl.executors.simulated import Measured, Simulation, simulate
from automl.pruners.base import Pruner
from automl.registry import pruner_class, sampler_class
from automl.scheduler import Scheduler
from search_spaces.configuration import Configuration
from search_spaces.parameters import Categorical
from search_spaces.space import SearchSpace
from studies.trial import Trial, TrialState
from tests.automl.conftest import Search
from tests.helpers.toy import SPACE, loss_after

EPOCHS = 9


def toy(configuration: Configuration, number: int, epoch: int) -> Measured:
    x = configuration["x"]
    assert isinstance(x, float)
    return Measured(loss_after(epoch, x), seconds=1.0 + number % 3)


def scheduler(sampler: str = "random", pruner: str = "asha", *, space: SearchSpace = SPACE, seed: int = 0) -> Scheduler:
    judge: Pruner = pruner_class(pruner)("minimize", EPOCHS)
    return Scheduler(space=space, sampler=sampler_class(sampler)("minimize"), pruner=judge, seed=seed)


def outcomes(trials: Sequence[Trial]) -> list[object]:
    return [(trial.configuration, trial.reports, trial.state, trial.value) for trial in trials]


@pytest.mark.parametrize("sampler", ["random", "evolution", "surrogate_evolution"])
@pytest.mark.parametrize("pruner", ["none", "median", "asha", "asha_promote", "tests.helpers.pruners:Halving"])
def test_simulation_is_what_the_real_search_does(toy_search: Search, sampler: str, pruner: str) -> None:
    real = toy_search(trials=16, epochs=EPOCHS, sampler=sampler, pruner=pruner, seed=4).study.trials()
    simulated = simulate(scheduler(sampler, pruner, seed=4), toy, trials=16)
    assert outcomes(simulated.trials) == outcomes(real)


@pytest.mark.parametrize("workers", [1, 3, 8])
@pytest.mark.parametrize("pruner", ["none", "asha", "asha_promote"])
def test_time_adds_up_and_the_budget_is_kept(workers: int, pruner: str) -> None:
    found = simulate(scheduler(pruner=pruner), toy, workers=workers, trials=30)
    assert len(found.trials) == 30
    assert all(trial.state.is_ended for trial in found.trials)
    worked_s = sum((1.0 + trial.number % 3) * trial.last_epoch for trial in found.trials)
    assert found.seconds <= worked_s <= workers * found.seconds
    times = [happening.time_s for happening in found.happenings]
    assert times == sorted(times)
    assert Counter(happening.number for happening in found.happenings if happening.state.is_ended) == Counter(range(30))


def test_same_seed_same_search() -> None:
    first, again, other = (simulate(scheduler(seed=seed), toy, workers=4, trials=12) for seed in (1, 1, 2))
    assert first == again
    assert outcomes(first.trials) != outcomes(other.trials)


def test_clock_stops_in_the_middle_of_trainings() -> None:
    found = simulate(scheduler(pruner="none"), toy, workers=2, seconds=20.0)
    assert found.seconds == 20.0
    assert found.reason == "20 s are over"
    assert [trial.state for trial in found.trials[-2:]] == [TrialState.RUNNING] * 2


def test_value_that_is_no_number_ends_its_trial() -> None:
    def broken(configuration: Configuration, number: int, epoch: int) -> Measured:
        return Measured(math.nan if epoch == 2 and number % 2 else float(epoch))

    found = simulate(scheduler(pruner="none"), broken, trials=4)
    assert [(trial.state, trial.cause, trial.last_epoch) for trial in found.trials] == [
        (TrialState.COMPLETE, None, EPOCHS),
        (TrialState.FAILED, "non_finite", 1),
    ] * 2


@pytest.mark.parametrize("pruner", ["none", "asha", "asha_promote"])
def test_training_that_is_complete_early_has_no_more_epochs(pruner: str) -> None:
    asked: list[int] = []

    def short(configuration: Configuration, number: int, epoch: int) -> Measured:
        asked.append(epoch)
        return Measured(toy(configuration, number, epoch).value, is_last=epoch == 4)

    found = simulate(scheduler(pruner=pruner), short, trials=12, workers=2)
    assert max(asked) == 4
    assert {trial.last_epoch for trial in found.trials if trial.state is TrialState.COMPLETE} == {4}
    assert all(trial.state.is_ended for trial in found.trials)


def test_going_on_takes_its_time() -> None:
    at_once, slowly = (
        simulate(scheduler(pruner="asha_promote"), toy, trials=20, resume_s=resume_s) for resume_s in (0.0, 100.0)
    )
    resumed = sum(trial.attempt - 1 for trial in slowly.trials)
    assert outcomes(slowly.trials) == outcomes(at_once.trials)
    assert resumed > 0
    assert slowly.seconds == pytest.approx(at_once.seconds + 100.0 * resumed)


def test_finite_space_ends_by_itself() -> None:
    space = SearchSpace("small", {"x": Categorical(choices=(0.1, 0.2, 0.3))})
    found = simulate(scheduler(pruner="none", space=space), toy, workers=2)
    assert len(found.trials) == 3
    assert "exhausted: 3 of 3" in found.reason


def test_queued_configurations_come_first() -> None:
    wished = [Configuration({"x": 0.25}), Configuration({"x": 0.75})]
    found = simulate(scheduler(pruner="none"), toy, trials=5, queued=wished)
    assert [trial.configuration for trial in found.trials[:2]] == wished


def test_search_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="give trials or seconds"):
        simulate(scheduler(), toy)
    with pytest.raises(ValueError, match="workers=0"):
        simulate(scheduler(), toy, workers=0, trials=1)


def test_simulation_has_as_many_epochs_as_its_trials() -> None:
    found: Simulation = simulate(scheduler(), toy, trials=9)
    assert found.epochs == sum(len(trial.reports) for trial in found.trials)
