"""Our samplers in plain Optuna programs."""

import pickle
from statistics import median

import optuna
import pytest

from automl.registry import available
from automl.samplers import as_optuna
from automl.samplers.base import NothingLeftError

NAMES = [name for name in available("sampler") if name not in ("gp",)]


@pytest.fixture(autouse=True)
def _quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def bowl(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -1.0, 1.0)
    rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
    width = trial.suggest_int("width", 8, 64, step=8)
    kind = trial.suggest_categorical("kind", ["a", "b", None])
    trial.suggest_float("constant", 2.0, 2.0)
    return abs(x - 0.3) + abs(rate - 0.01) + abs(width - 32) / 64 + (kind != "b")


def searched(name: str, trials: int, seed: int = 0, jobs: int = 1) -> optuna.Study:
    study = optuna.create_study(sampler=as_optuna(name, seed=seed))
    study.optimize(bowl, n_trials=trials, n_jobs=jobs)
    return study


@pytest.mark.parametrize("name", NAMES)
def test_program_of_optuna_runs_with_each_sampler(name: str) -> None:
    study = searched(name, 12)
    assert len(study.trials) == 12
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 12
    assert [trial.params for trial in searched(name, 12).trials] == [trial.params for trial in study.trials]


def test_surrogate_finds_what_random_search_does_not() -> None:
    def usual_best(name: str) -> float:
        return median(searched(name, 40, seed).best_value for seed in range(3))

    assert usual_best("surrogate_evolution") < 0.5 * usual_best("random")


def test_threads_share_one_sampler() -> None:
    study = searched("surrogate_evolution", 24, jobs=3)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 24
    assert sorted(trial.number for trial in study.trials) == list(range(24))


def test_running_trials_are_kept_away_from_before_they_say_what_they_are() -> None:
    study = searched("surrogate_evolution", 10)
    distributions = study.trials[0].distributions
    asked = [study.ask() for _ in range(4)]
    proposed = {tuple(trial.relative_params.values()) for trial in asked}
    assert len(proposed) == 4
    assert set(asked[0].relative_params) == {name for name in distributions if name != "constant"}


def test_one_sampler_serves_two_studies() -> None:
    shared = as_optuna("surrogate_evolution", seed=3)
    first, second = (optuna.create_study(sampler=shared) for _ in range(2))
    for study in (first, second):
        study.optimize(bowl, n_trials=9)
    assert [trial.params for trial in first.trials] == [trial.params for trial in second.trials]
    assert [trial.params for trial in first.trials] == [
        trial.params for trial in searched("surrogate_evolution", 9, 3).trials
    ]


def test_sampler_can_be_sent_to_another_process() -> None:
    study = optuna.create_study(sampler=pickle.loads(pickle.dumps(as_optuna("evolution", seed=5))))
    study.optimize(bowl, n_trials=8)
    assert [trial.params for trial in study.trials] == [trial.params for trial in searched("evolution", 8, 5).trials]


def test_conditional_programs_draw_what_is_not_always_there() -> None:
    def branched(trial: optuna.Trial) -> float:
        kind = trial.suggest_categorical("kind", ["deep", "wide"])
        return trial.suggest_float(kind, 0.0, 1.0)

    study = optuna.create_study(sampler=as_optuna("surrogate_evolution", seed=0))
    study.optimize(branched, n_trials=20)
    assert {name for trial in study.trials for name in trial.params} == {"kind", "deep", "wide"}


def test_constraints_teach_to_turn_away() -> None:
    def above_half(is_constrained: bool) -> int:
        study = optuna.create_study(sampler=as_optuna("surrogate_evolution", seed=1))

        def objective(trial: optuna.Trial) -> float:
            x = trial.suggest_float("x", 0.0, 1.0)
            if is_constrained:
                trial.set_constraint("limit", x - 0.5)
            return -x

        study.optimize(objective, n_trials=30)
        return sum(trial.params["x"] > 0.5 for trial in study.trials[10:])

    assert above_half(True) < 0.5 * above_half(False)


def test_pruned_trials_count_by_their_last_report() -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.report(x, 1)
        if trial.number % 2:
            raise optuna.TrialPruned
        return x

    study = optuna.create_study(sampler=as_optuna("surrogate_evolution", seed=1))
    study.optimize(objective, n_trials=25)
    assert min(trial.params["x"] for trial in study.trials) < 0.02


def test_grid_ends_a_program_and_says_why_to_one_that_asks() -> None:
    def cell(trial: optuna.Trial) -> float:
        return float(trial.suggest_int("a", 0, 1) + trial.suggest_int("b", 0, 2))

    study = optuna.create_study(sampler=as_optuna("grid"))
    study.optimize(cell, n_trials=50)
    assert {tuple(trial.params.values()) for trial in study.trials} == {(a, b) for a in (0, 1) for b in (0, 1, 2)}
    assert len(study.trials) <= 8
    with pytest.raises(NothingLeftError, match="grid done: 6 of 6 points"):
        study.ask().suggest_int("a", 0, 1)


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(ValueError, match="evolution would score networks by synflow"):
        as_optuna("evolution", warmup_draws=50)
    with pytest.raises(ValueError, match="population_size='x'"):
        as_optuna("evolution", population_size="x")
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=as_optuna("evolution"))
    with pytest.raises(ValueError, match="one objective, the study has 2"):
        study.ask()
