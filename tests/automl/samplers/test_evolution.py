import numpy as np
import pytest

from automl.samplers.evolution import EvolutionSampler
from search_spaces.parameters import Categorical, Float
from search_spaces.space import SearchSpace
from studies.trial import Trial, TrialState
from tests.contracts.sampler_contract import MIXED_SPACE, history
from tests.helpers.trials import make_trial

CELL = SearchSpace(
    "cell",
    {f"edge_{i}": Categorical(choices=("none", "skip", "conv"), role="architecture") for i in range(4)}
    | {"learning_rate": Float(low=1e-4, high=1e-1, log=True)},
)


def distance(a: object, b: object) -> int:
    assert isinstance(a, dict) and isinstance(b, dict)
    return sum(a[name] != b[name] for name in a)


@pytest.mark.parametrize("share, changed", [(1.0, "edge_"), (0.0, "learning_rate")])
def test_evolution_child_differs_from_its_parent_in_one_parameter(share: float, changed: str) -> None:
    rng = np.random.default_rng(0)
    trials = [make_trial(n, CELL.sample(rng), value=float(n == 3)) for n in range(12)]
    sampler = EvolutionSampler("maximize", tournament_size=12, architecture_share=share)
    child = sampler.suggest(CELL, trials, rng)
    different = [name for name in child if child[name] != trials[3].configuration[name]]
    assert len(different) == 1
    assert different[0].startswith(changed)


def test_evolution_parent_is_the_best_of_a_full_tournament() -> None:
    trials = history(12)
    for direction, best in (("maximize", max), ("minimize", min)):
        sampler = EvolutionSampler(direction, tournament_size=12)  # type: ignore[arg-type]  # both are directions
        parent = best(trials, key=lambda trial: trial.value or 0.0)
        child = sampler.suggest(MIXED_SPACE, trials, np.random.default_rng(0))
        assert distance(dict(child), dict(parent.configuration)) == 1


def test_evolution_oldest_trial_leaves_the_population_although_it_is_the_best() -> None:
    rng = np.random.default_rng(0)
    trials: list[Trial] = [make_trial(0, CELL.sample(rng), value=1.0)]
    trials += [make_trial(n, CELL.sample(rng), value=0.5) for n in range(1, 13)]
    child = EvolutionSampler("maximize", tournament_size=12).suggest(CELL, trials, rng)
    assert min(distance(dict(child), dict(trial.configuration)) for trial in trials[1:]) == 1


def test_evolution_pruned_trials_compete_with_their_last_report() -> None:
    rng = np.random.default_rng(0)
    trials = [make_trial(n, CELL.sample(rng), state=TrialState.PRUNED, reports=[0.1, float(n == 5)]) for n in range(12)]
    child = EvolutionSampler("maximize", tournament_size=12).suggest(CELL, trials, rng)
    assert distance(dict(child), dict(trials[5].configuration)) == 1


def test_evolution_improves_on_random_search_of_equal_length() -> None:
    def best_after(sampler: EvolutionSampler, seed: int) -> float:
        trials: list[Trial] = []
        for number in range(60):
            configuration = sampler.suggest(CELL, trials, np.random.default_rng([seed, number]))
            value = sum(configuration[f"edge_{i}"] == "conv" for i in range(4)) - abs(
                np.log10(float(str(configuration["learning_rate"]))) + 2
            )
            trials.append(make_trial(number, configuration, value=float(value)))
        return max(trial.value or -9.0 for trial in trials)

    evolved = np.mean([best_after(EvolutionSampler("maximize"), seed) for seed in range(10)])
    random = np.mean([best_after(EvolutionSampler("maximize", population_size=1000), seed) for seed in range(10)])
    assert evolved > random


@pytest.mark.parametrize(
    "wrong", [{"population_size": 1}, {"tournament_size": 0}, {"tournament_size": 13}, {"architecture_share": 1.1}]
)
def test_evolution_wrong_settings_are_refused_by_name(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        EvolutionSampler("maximize", **wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_evolution_trial_that_ran_out_of_memory_is_no_parent_however_good_its_reports() -> None:
    rng = np.random.default_rng(0)
    trials = [make_trial(n, CELL.sample(rng), value=0.5) for n in range(12)]
    greedy = make_trial(12, CELL.sample(rng), state=TrialState.FAILED, cause="oom", reports=[1.0])
    sampler = EvolutionSampler("maximize", tournament_size=12)
    for seed in range(20):
        with_it = sampler.suggest(CELL, [*trials, greedy], np.random.default_rng(seed))
        assert with_it == sampler.suggest(CELL, trials, np.random.default_rng(seed))
