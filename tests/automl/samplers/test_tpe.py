import numpy as np

from automl.samplers.tpe import TpeSampler
from search_spaces.parameters import Float
from search_spaces.space import SearchSpace
from studies.trial import Trial
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
    from studies.trial import TrialState

    xs = np.linspace(0, 1, 40)
    trials = [make_trial(n, {"x": float(x)}, value=-abs(float(x) - 0.5)) for n, x in enumerate(xs)]
    running = [make_trial(40 + n, {"x": 0.5}, state=TrialState.RUNNING) for n in range(10)]
    alone = np.mean(np.abs(np.array(suggestions(trials)) - 0.5))
    crowded = np.mean(np.abs(np.array(suggestions(trials + running)) - 0.5))
    assert crowded > alone
