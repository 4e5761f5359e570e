import numpy as np
import pytest

from automl.randomness import suggestion_generator
from automl.samplers.evolution import EvolutionSampler
from search_spaces.configuration import Configuration
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
    sampler = EvolutionSampler("maximize", population_size=12, tournament_size=12, architecture_share=share)
    child = sampler.suggest(CELL, trials, rng)
    different = [name for name in child if child[name] != trials[3].configuration[name]]
    assert len(different) == 1
    assert different[0].startswith(changed)


def test_evolution_parent_is_the_best_of_a_full_tournament() -> None:
    trials = history(12)
    for direction, best in (("maximize", max), ("minimize", min)):
        sampler = EvolutionSampler(direction, population_size=12, tournament_size=12)  # type: ignore[arg-type]  # both are directions
        parent = best(trials, key=lambda trial: trial.value or 0.0)
        child = sampler.suggest(MIXED_SPACE, trials, np.random.default_rng(0))
        assert distance(dict(child), dict(parent.configuration)) == 1


def test_evolution_oldest_trial_leaves_the_population_although_it_is_the_best() -> None:
    rng = np.random.default_rng(0)
    trials: list[Trial] = [make_trial(0, CELL.sample(rng), value=1.0)]
    trials += [make_trial(n, CELL.sample(rng), value=0.5) for n in range(1, 13)]
    child = EvolutionSampler("maximize", population_size=12, tournament_size=12).suggest(CELL, trials, rng)
    assert min(distance(dict(child), dict(trial.configuration)) for trial in trials[1:]) == 1


def test_evolution_pruned_trials_compete_with_their_last_report() -> None:
    rng = np.random.default_rng(0)
    trials = [make_trial(n, CELL.sample(rng), state=TrialState.PRUNED, reports=[0.1, float(n == 5)]) for n in range(12)]
    child = EvolutionSampler("maximize", population_size=12, tournament_size=12).suggest(CELL, trials, rng)
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
    "wrong",
    [
        {"population_size": 1},
        {"tournament_size": 0},
        {"tournament_size": 21},
        {"architecture_share": 1.1},
        {"crossover_probability": -1.0},
        {"mutation": "cells"},
        {"warmup_draws": 5},
        {"warmup_score": "synflaw"},
    ],
)
def test_evolution_wrong_settings_are_refused_by_name(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        EvolutionSampler("maximize", **wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_evolution_trial_that_ran_out_of_memory_is_no_parent_however_good_its_reports() -> None:
    rng = np.random.default_rng(0)
    trials = [make_trial(n, CELL.sample(rng), value=0.5) for n in range(12)]
    greedy = make_trial(12, CELL.sample(rng), state=TrialState.FAILED, cause="oom", reports=[1.0])
    sampler = EvolutionSampler("maximize", population_size=12, tournament_size=12)
    for seed in range(20):
        with_it = sampler.suggest(CELL, [*trials, greedy], np.random.default_rng(seed))
        assert with_it == sampler.suggest(CELL, trials, np.random.default_rng(seed))


def test_evolution_child_of_two_has_each_value_from_one_of_them_but_for_one() -> None:
    space = SearchSpace("many", {f"p{i}": Categorical(choices=("a", "b", "c")) for i in range(12)})
    trials = [make_trial(n, {f"p{i}": choice for i in range(12)}, value=1.0) for n, choice in enumerate("ab")]
    sampler = EvolutionSampler("maximize", population_size=2, tournament_size=1, crossover_probability=1.0)
    mixed = 0
    for seed in range(20):
        child = sampler.suggest(space, trials, np.random.default_rng(seed))
        counts = [list(child.values()).count(choice) for choice in "abc"]
        assert counts[2] <= 1  # the mutation
        mixed += min(counts[:2]) > 1
    assert mixed > 5  # two parents may be the same one


WIRED = SearchSpace(
    "wired",
    {f"operation_{i}": Categorical(choices=("conv", "pool", "skip"), role="architecture") for i in range(3)}
    | {f"input_{i}": Categorical(choices=tuple(range(i + 2)), role="architecture") for i in range(9)},
)


@pytest.mark.parametrize(("mutation", "share"), [("uniform", 0.25), ("cell", 0.5)])
def test_evolution_changes_operations_as_often_as_wires_in_cells(mutation: str, share: float) -> None:
    trials = [make_trial(n, WIRED.sample(np.random.default_rng(n)), value=float(n)) for n in range(4)]
    sampler = EvolutionSampler("maximize", population_size=4, tournament_size=4, mutation=mutation)  # type: ignore[arg-type]  # one of both
    changed = []
    for seed in range(300):
        child = sampler.suggest(WIRED, trials, np.random.default_rng(seed))
        changed += [name for name in child if child[name] != trials[3].configuration[name]]
    assert len(changed) == 300
    operations = sum(name.startswith("operation") for name in changed) / 300
    assert operations == pytest.approx(share, abs=0.09)


def test_evolution_begins_with_the_most_promising_of_a_large_draw() -> None:
    sampler = EvolutionSampler("maximize", population_size=4, warmup_draws=50, warmup_score="naswot")
    assert sampler.scored_by == "naswot"
    asked: list[Configuration] = []

    def score(configuration: Configuration) -> float:
        asked.append(configuration)
        return float(list(configuration.values()).count("conv"))

    sampler.score = score
    trials: list[Trial] = []
    for number in range(4):
        configuration = sampler.suggest(CELL, trials, suggestion_generator(3, number))
        trials.append(make_trial(number, configuration, value=0.0))
    assert len(asked) == 50  # once
    best = sorted((score(each) for each in asked[:50]), reverse=True)[:4]
    assert [score(Configuration(trial.configuration)) for trial in trials] == best
    again = EvolutionSampler("maximize", population_size=4, warmup_draws=50)
    again.score = score
    resumed = again.suggest(CELL, trials[:2], suggestion_generator(3, 2))
    assert resumed == trials[2].configuration


def test_evolution_that_cannot_score_says_so() -> None:
    with pytest.raises(ValueError, match="warmup_draws needs networks to score"):
        EvolutionSampler("maximize", warmup_draws=50).suggest(CELL, [], np.random.default_rng(0))


@pytest.mark.parametrize(("budget", "is_told"), [(None, False), (21, False), (20, True), (1, True)])
def test_evolution_says_when_nothing_will_evolve(budget: int | None, is_told: bool) -> None:
    notes = EvolutionSampler("maximize").notes(CELL, budget)
    assert bool(notes) is is_told
    assert all("first population of 20: nothing will evolve" in note for note in notes)
