import numpy as np
import pytest

from automl.samplers.tpe import TpeSampler
from search_spaces.parameters import Float
from search_spaces.space import SearchSpace
from studies.trial import Trial, TrialState
from tests.helpers.trials import make_trial

LINE = SearchSpace("line", {"x": Float(low=0.0, high=1.0)})


def suggestions(trials: list[Trial], direction: str = "maximize") -> list[float]:
    sampler = TpeSampler(direction)  # type: ignore[arg-type]  # a direction
    return [float(str(sampler.suggest(LINE, trials, np.random.default_rng(seed))["x"])) for seed in range(30)]


def test_tpe_proposes_near_the_good_trials_in_both_directions() -> None:
    xs = np.linspace(0, 1, 40)
    trials = [make_trial(n, {"x": float(x)}, value=-abs(float(x) - 0.8)) for n, x in enumerate(xs)]
    assert abs(np.median(suggestions(trials)) - 0.8) < 0.15
    mirrored = [make_trial(t.number, t.configuration, value=-(t.value or 0.0)) for t in trials]
    assert abs(np.median(suggestions(mirrored, "minimize")) - 0.8) < 0.15


def test_tpe_running_trials_push_proposals_away() -> None:
    xs = np.linspace(0, 1, 40)
    trials = [make_trial(n, {"x": float(x)}, value=-abs(float(x) - 0.5)) for n, x in enumerate(xs)]
    running = [make_trial(40 + n, {"x": 0.5}, state=TrialState.RUNNING) for n in range(10)]
    alone = np.mean(np.abs(np.array(suggestions(trials)) - 0.5))
    crowded = np.mean(np.abs(np.array(suggestions(trials + running)) - 0.5))
    assert crowded > alone


def halves(state: TrialState, cause: str | None) -> list[Trial]:
    """Trials with equally good results in the lower half, and others in the upper half that could not be trained."""
    low = [make_trial(n, {"x": float(x)}, value=0.5) for n, x in enumerate(np.linspace(0.02, 0.48, 12))]
    high = [
        make_trial(12 + n, {"x": float(x)}, state=state, cause=cause) for n, x in enumerate(np.linspace(0.52, 0.98, 12))
    ]
    return low + high


def share_above_half(trials: list[Trial]) -> float:
    return float(np.mean(np.array(suggestions(trials)) > 0.5))


@pytest.mark.parametrize(
    ("state", "cause"), [(TrialState.FAILED, "oom"), (TrialState.INFEASIBLE, "infeasible")], ids=["oom", "infeasible"]
)
def test_tpe_turns_away_from_what_cannot_be_trained(state: TrialState, cause: str) -> None:
    trials = halves(state, cause)
    assert share_above_half(trials) < 0.5 * share_above_half(trials[:12])


def test_tpe_learns_nothing_from_errors_of_the_code() -> None:
    trials = halves(TrialState.FAILED, "user_error")
    assert suggestions(trials) == suggestions(trials[:12])


def test_tpe_proposes_at_random_until_something_could_be_trained() -> None:
    infeasible = [make_trial(n, {"x": 0.9}, state=TrialState.INFEASIBLE) for n in range(40)]
    assert suggestions(infeasible) == suggestions([])


def test_tpe_takes_no_infeasible_trial_for_a_good_one_however_many_there_are() -> None:
    low = [make_trial(n, {"x": 0.2}, value=0.5) for n in range(10)]
    high = [make_trial(10 + n, {"x": 0.8}, state=TrialState.INFEASIBLE) for n in range(300)]
    assert share_above_half(low + high) < 0.2
