"""What Optuna's methods, and the library of CMA-ES, make of a study: they learn from all that tells something."""

from collections.abc import Callable

import numpy as np
import optuna
import pytest
from optuna.search_space import intersection_search_space
from optuna.trial import TrialState as OptunaState

from automl.executors.simulated import Measured, simulate
from automl.pruners.none import NoPruner
from automl.registry import sampler_class
from automl.samplers.optuna_snapshot import ResultsAndPending, frozen
from automl.samplers.tpe import _shared
from automl.scheduler import Scheduler
from search_spaces.configuration import Configuration
from search_spaces.parameters import Categorical, Float, Integer
from search_spaces.space import SearchSpace
from studies.trial import Trial, TrialState
from tests.contracts.sampler_contract import MIXED_SPACE
from tests.helpers.trials import make_trial

BOWL = SearchSpace("bowl", {name: Float(low=-1.0, high=1.0) for name in "abcd"})
LINE = SearchSpace("line", {"x": Float(low=0.0, high=1.0)})


def distance(configuration: Configuration) -> float:
    return float(np.linalg.norm([float(str(value)) - 0.3 for value in configuration.values()]))


def best_of(sampler: str, trials: int, seed: int, loss: Callable[[Configuration], float] = distance) -> float:
    scheduler = Scheduler(
        space=BOWL, sampler=sampler_class(sampler)("minimize"), pruner=NoPruner("minimize", 1), seed=seed
    )
    found = simulate(scheduler, lambda configuration, *_: Measured(loss(configuration)), trials=trials)
    return min(trial.value for trial in found.trials if trial.value is not None)


@pytest.mark.parametrize(("name", "trials"), [("gp", 25), ("nsga2", 150), ("cmaes", 150)])
def test_methods_learn(name: str, trials: int) -> None:
    ours, drawn = ([best_of(sampler, trials, seed) for seed in range(2)] for sampler in (name, "random"))
    assert np.mean(ours) < 0.6 * np.mean(drawn)


@pytest.mark.parametrize("name", ["nsga2", "cmaes"])
def test_trial_that_ends_late_changes_nothing_but_its_place(name: str) -> None:
    """A sampler that has seen the study grow answers as one that sees it for the first time."""
    rng = np.random.default_rng(0)
    trials = [make_trial(number, BOWL.sample(rng), value=float(number % 7)) for number in range(60)]
    late = make_trial(3, trials[3].configuration, state=TrialState.RUNNING)
    grown, fresh = (sampler_class(name)("minimize") for _ in range(2))
    for count in range(10, 60, 7):
        grown.suggest(BOWL, [*trials[:3], late, *trials[4:count]], np.random.default_rng(count))
    assert grown.suggest(BOWL, trials, np.random.default_rng(1)) == fresh.suggest(
        BOWL, trials, np.random.default_rng(1)
    )


def test_gp_turns_away_from_what_cannot_be_trained() -> None:
    low = [make_trial(n, {"x": float(x)}, value=0.5 + 0.1 * x) for n, x in enumerate(np.linspace(0.02, 0.48, 12))]
    high = [
        make_trial(12 + n, {"x": float(x)}, state=TrialState.INFEASIBLE)
        for n, x in enumerate(np.linspace(0.52, 0.98, 12))
    ]

    def above(trials: list[Trial]) -> float:
        sampler = sampler_class("gp")("maximize")
        xs = [float(str(sampler.suggest(LINE, trials, np.random.default_rng(seed))["x"])) for seed in range(8)]
        return float(np.mean(np.array(xs) > 0.55))

    assert above(low + high) < above(low)


def test_cmaes_turns_away_from_what_cannot_be_trained() -> None:
    """The better, the nearer to what is refused."""
    sampler = sampler_class("cmaes")("maximize")
    trials: list[Trial] = []
    for number in range(120):
        configuration = sampler.suggest(BOWL, trials, np.random.default_rng(number))
        total = sum(float(str(value)) for value in configuration.values())
        is_refused = total > 0.5
        state = TrialState.INFEASIBLE if is_refused else TrialState.COMPLETE
        trials.append(make_trial(number, configuration, state=state, value=None if is_refused else total))
    refused = [trial.state is TrialState.INFEASIBLE for trial in trials]
    assert 0.0 < np.mean(refused[-60:]) < 0.7
    assert max(trial.value for trial in trials if trial.value is not None) > 0.3


def test_nsga2_makes_generations_of_pruned_trials_too() -> None:
    """Two of three trials are stopped at their first report; the later ones are children all the same."""
    rng = np.random.default_rng(0)
    trials: list[Trial] = []
    sampler = sampler_class("nsga2")("minimize", **{"population_size": 4})
    for number in range(40):
        configuration = sampler.suggest(BOWL, trials, rng)
        loss = distance(configuration)
        is_pruned = number % 3 != 0
        trials.append(
            make_trial(
                number,
                configuration,
                state=TrialState.PRUNED if is_pruned else TrialState.COMPLETE,
                value=None if is_pruned else loss,
                reports=[loss],
            )
        )
    losses = [distance(Configuration(trial.configuration)) for trial in trials]
    assert np.mean(losses[-12:]) < 0.7 * np.mean(losses[:12])


def test_cmaes_moves_numbers_and_draws_choices() -> None:
    space = SearchSpace(
        "mixed", {"x": Float(low=0.0, high=1.0), "n": Integer(low=1, high=9), "c": Categorical(choices=("a", "b"))}
    )
    sampler = sampler_class("cmaes")("minimize")
    trials: list[Trial] = []
    for number in range(80):
        configuration = sampler.suggest(space, trials, np.random.default_rng(number))
        trials.append(make_trial(number, configuration, value=abs(float(str(configuration["x"])) - 0.9)))
    newest = [trial.configuration for trial in trials[-20:]]
    assert np.mean([float(str(each["x"])) for each in newest]) > 0.8
    assert {each["c"] for each in newest} == {"a", "b"}


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("gp", {"startup_trials": 0}, "startup_trials=0"),
        ("nsga2", {"population_size": 1, "crossover_probability": 2.0}, "population_size=1.*crossover_probability=2.0"),
        ("cmaes", {"population_size": 3}, "population_size=3"),
    ],
)
def test_settings_out_of_range_are_refused(name: str, options: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        sampler_class(name)("minimize", **options)


def test_values_of_a_snapshot() -> None:
    trials = [
        make_trial(0, {"x": 0.1}, value=3.0),
        make_trial(1, {"x": 0.2}, state=TrialState.PRUNED, reports=[9.0, 5.0]),
        make_trial(2, {"x": 0.3}, state=TrialState.RUNNING, reports=[1.0]),
        make_trial(3, {"x": 0.4}, state=TrialState.FAILED, cause="user_error"),
        make_trial(4, {"x": 0.5}, state=TrialState.FAILED, cause="oom"),
        make_trial(5, {"x": 7.0}, value=1.0),
    ]
    for direction, worst in (("minimize", 5.0), ("maximize", 3.0)):
        results, pending = ResultsAndPending(direction)(trials, LINE.distributions())  # type: ignore[arg-type]
        assert [(each.params["x"], each.value) for each in results] == [(0.1, 3.0), (0.2, 5.0), (0.5, worst)]
        assert [each.params["x"] for each in pending] == [0.3]


def test_shared_parameters_are_optunas_intersection() -> None:
    rng = np.random.default_rng(0)
    distributions = MIXED_SPACE.distributions()
    seen = []
    for number in range(6):
        configuration = dict(MIXED_SPACE.sample(rng))
        if number == 4:
            del configuration["width"]
        made = frozen(make_trial(number, configuration, value=0.0), distributions, OptunaState.COMPLETE, value=0.0)
        assert made is not None
        seen.append(made)
    study = optuna.create_study()
    study.add_trials(seen)
    expected = {name: each for name, each in intersection_search_space(study.trials).items() if not each.single()}
    found = _shared(seen, distributions)
    assert list(found.items()) == list(expected.items())
    assert "width" not in found
    assert "only" not in found
    assert _shared([], distributions) == {}
