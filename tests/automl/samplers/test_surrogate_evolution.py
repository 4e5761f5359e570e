"""What the surrogate is good for: few trials, parallel ones, and configurations that cannot be trained."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from automl.randomness import suggestion_generator
from automl.samplers.base import Sampler
from automl.samplers.random import RandomSampler
from automl.samplers.surrogate_evolution import SurrogateEvolutionSampler
from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.parameters import Categorical, Float
from search_spaces.space import SearchSpace
from studies.trial import Trial, TrialState
from tests.contracts.sampler_contract import MIXED_SPACE, history
from tests.helpers.trials import make_trial

BOWL = SearchSpace("bowl", {name: Float(low=0.0, high=1.0) for name in "abcd"})
BRANCHES = SearchSpace(
    "branches",
    {
        "branch": Categorical(choices=("first", "second")),
        "x": Float(low=0.0, high=1.0, when={"branch": "first"}),
        "y": Float(low=0.0, high=1.0, when={"branch": "second"}),
        "z": Float(low=0.0, high=1.0, when={"branch": "second"}),
    },
)
CELL = SearchSpace("cell", {f"edge_{at}": Categorical(choices=tuple("abcde")) for at in range(6)})


def sampler() -> SurrogateEvolutionSampler:
    return SurrogateEvolutionSampler("minimize")


def number(configuration: Mapping[str, JsonScalar], name: str) -> float:
    value = configuration[name]
    assert isinstance(value, float)
    return value


def bowl(configuration: Mapping[str, JsonScalar]) -> float:
    return sum((number(configuration, name) - 0.7) ** 2 for name in "abcd")


def branches(configuration: Mapping[str, JsonScalar]) -> float:
    """The first branch is better on average, the second has the better best."""
    if configuration["branch"] == "first":
        return 0.3 + 0.1 * (number(configuration, "x") - 0.5) ** 2
    return 4.0 * (number(configuration, "y") - 0.8) ** 2 + 4.0 * (number(configuration, "z") - 0.2) ** 2


def searched(
    proposer: Sampler,
    space: SearchSpace,
    loss: Callable[[Mapping[str, JsonScalar]], float],
    *,
    trials: int = 30,
    seed: int = 0,
) -> list[Trial]:
    found: list[Trial] = []
    for at in range(trials):
        configuration = proposer.suggest(space, tuple(found), suggestion_generator(seed, at))
        found.append(make_trial(at, configuration, value=loss(configuration)))
    return found


def best(trials: list[Trial]) -> float:
    return min(trial.value for trial in trials if trial.value is not None)


@pytest.mark.parametrize(("space", "loss"), [(BOWL, bowl), (BRANCHES, branches)], ids=["bowl", "branches"])
def test_thirty_trials_are_better_than_a_hundred_and_fifty_random_ones(
    space: SearchSpace, loss: Callable[[Mapping[str, JsonScalar]], float]
) -> None:
    ours = [best(searched(sampler(), space, loss, seed=seed)) for seed in range(5)]
    random = [best(searched(RandomSampler("minimize"), space, loss, trials=150, seed=seed)) for seed in range(5)]
    assert np.median(ours) < np.median(random)


def test_proposals_go_on_after_a_break_as_without_one() -> None:
    whole = searched(sampler(), BOWL, bowl, trials=12)
    again = sampler().suggest(BOWL, tuple(whole[:11]), suggestion_generator(0, 11))
    assert again == whole[11].configuration


def test_earlier_looks_leave_no_trace() -> None:
    used = sampler()
    trials = history(30)
    used.suggest(MIXED_SPACE, history(40, list(TrialState)), np.random.default_rng(5))
    used.suggest(BOWL, (), np.random.default_rng(5))
    used.suggest(MIXED_SPACE, trials[:20], np.random.default_rng(5))
    fresh = SurrogateEvolutionSampler("minimize").suggest(MIXED_SPACE, trials, np.random.default_rng(7))
    assert used.suggest(MIXED_SPACE, trials, np.random.default_rng(7)) == fresh


def test_parallel_proposals_spread_out() -> None:
    trials = searched(sampler(), BOWL, bowl, trials=20)
    for at in range(20, 28):
        configuration = sampler().suggest(BOWL, tuple(trials), suggestion_generator(0, at))
        trials.append(make_trial(at, configuration, state=TrialState.RUNNING))
    rows = np.array([[number(trial.configuration, name) for name in "abcd"] for trial in trials[20:]])
    distances = np.linalg.norm(rows[:, None, :] - rows[None, :, :], axis=2)[np.triu_indices(8, 1)]
    assert distances.min() > 0.01


def test_what_cannot_be_trained_is_avoided() -> None:
    """Half of the space is refused, and the loss falls towards it."""
    trials: list[Trial] = []
    for at in range(40):
        configuration = sampler().suggest(BOWL, tuple(trials), suggestion_generator(1, at))
        if number(configuration, "a") > 0.5:
            trials.append(make_trial(at, configuration, state=TrialState.INFEASIBLE))
        else:
            trials.append(make_trial(at, configuration, value=-number(configuration, "a")))
    refused = [trial.state is TrialState.INFEASIBLE for trial in trials]
    assert sum(refused[20:]) < 10
    assert min(trial.value for trial in trials if trial.value is not None) < -0.45


def test_proposal_is_never_a_configuration_that_is_known() -> None:
    trials: list[Trial] = []
    for at in range(60):
        configuration = sampler().suggest(CELL, tuple(trials), suggestion_generator(2, at))
        assert configuration not in [trial.configuration for trial in trials]
        loss = float(list(configuration.values()).count("a"))
        trials.append(make_trial(at, configuration, value=loss, state=TrialState.COMPLETE))


def test_two_names_of_one_network_are_tried_once() -> None:
    def sorted_edges(found: Configuration) -> Configuration:
        return Configuration(dict(zip(found, sorted(map(str, found.values())), strict=True)))

    space = SearchSpace("bag", CELL.parameters, canonical=sorted_edges)
    trials = searched(sampler(), space, lambda found: float(list(found.values()).count("a")), trials=40)
    assert len({space.key(trial.configuration) for trial in trials}) == 40


def test_paused_trial_counts_with_its_last_report() -> None:
    trials = [
        make_trial(at, {name: 0.1 * at for name in "abcd"}, state=TrialState.PAUSED, reports=[float(-at)])
        for at in range(10)
    ]
    configuration = sampler().suggest(BOWL, trials, np.random.default_rng(0))
    assert np.mean([number(configuration, name) for name in "abcd"]) > 0.6


def test_space_of_constants_has_one_proposal() -> None:
    space = SearchSpace("fixed", {"a": 1, "b": "two"})
    assert dict(sampler().suggest(space, (), np.random.default_rng(0))) == {"a": 1, "b": "two"}


def test_person_s_floating_point_mode_does_no_harm() -> None:
    trials = searched(sampler(), BOWL, bowl, trials=10)
    with np.errstate(all="raise"):
        sampler().suggest(BOWL, tuple(trials), np.random.default_rng(0))


def test_wrong_settings_are_all_named() -> None:
    with pytest.raises(ValueError, match=r"startup_trials=1 .*candidates=5 .*branch_probability=1.5") as error:
        SurrogateEvolutionSampler("minimize", startup_trials=1, candidates=5, branch_probability=1.5)
    assert "at least 3" in str(error.value)


def test_proposal_descends_from_the_nearest_of_the_best() -> None:
    trials = [
        make_trial(place, {f"edge_{at}": letter for at in range(6)}, value=float(place))
        for place, letter in enumerate("abcde" * 4)
    ]
    surrogate = sampler()
    best = surrogate.parents(CELL, trials)
    assert [trial.number for trial in best] == list(range(16))
    child = Configuration({**trials[2].configuration, "edge_0": "a"})
    parent = surrogate.parent(CELL, child, trials)
    assert parent is not None and parent.number == 2
    assert surrogate.parent(CELL, child, trials[:4]) is None  # drawn


def test_best_are_trained_again_in_turn_once_it_is_time() -> None:
    surrogate = SurrogateEvolutionSampler("minimize", repeat_from=20, repeat_best=3)
    rng = np.random.default_rng(0)
    trials = [make_trial(place, BOWL.sample(rng), value=float((7 * place) % 20)) for place in range(19)]
    assert not surrogate.may_repeat(trials)
    trials.append(make_trial(19, BOWL.sample(rng), value=13.0))
    best = sorted(range(20), key=lambda place: trials[place].value or 0.0)[:3]
    assert surrogate.may_repeat(trials)
    repeated = []
    for place in range(20, 27):
        again = surrogate.suggest(BOWL, trials, suggestion_generator(0, place))
        repeated.append(next(trial.number for trial in trials if trial.configuration == again))
        state = TrialState.RUNNING if place == 26 else TrialState.COMPLETE
        trials.append(make_trial(place, again, state=state, value=None if state is TrialState.RUNNING else -99.0))
    assert repeated == [*best, *best, best[0]]


@pytest.mark.parametrize("wrong", [{"repeat_from": 5}, {"repeat_best": 0}, {"candidates": 3}])
def test_settings_out_of_range_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SurrogateEvolutionSampler("minimize", **wrong)
