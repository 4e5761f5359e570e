"""What Optuna's samplers are shown of a long study, and how often a trial is turned into one of theirs."""

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import FrozenTrial, create_trial

from automl.samplers.optuna_snapshot import BEST, HISTORY, BoundedHistory, FrozenTrials
from automl.samplers.tpe import TpeSampler
from search_spaces.parameters import Float
from search_spaces.space import SearchSpace
from studies.trial import Trial, TrialState
from tests.helpers.trials import make_trial

LINE = SearchSpace("line", {"x": Float(low=0.0, high=1.0)})
COMPLETE, PRUNED, RUNNING, INFEASIBLE = (
    TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING, TrialState.INFEASIBLE
)  # fmt: skip


def long_study(count: int = 3000) -> list[Trial]:
    """Losses are smallest early, and in each hundred trials one runs, one was refused, and thirty were pruned."""
    rng = np.random.default_rng(0)
    trials = []
    for number in range(count):
        x, kind = {"x": float(rng.random())}, number % 100
        if kind == 0:
            trials.append(make_trial(number, x, state=RUNNING))
        elif kind == 1:
            trials.append(make_trial(number, x, state=INFEASIBLE))
        elif kind < 32:
            trials.append(make_trial(number, x, state=PRUNED, reports=[float(number)] * (1 + number % 3)))
        else:
            trials.append(make_trial(number, x, value=float(number)))
    return trials


def test_short_study_is_shown_whole() -> None:
    trials = long_study(HISTORY)
    assert list(BoundedHistory("minimize")(trials)) == trials


def test_of_a_long_study_the_best_the_newest_and_what_runs_is_shown() -> None:
    trials = long_study()
    shown = BoundedHistory("minimize")(trials)
    numbers = [trial.number for trial in shown]
    assert numbers == sorted(set(numbers))
    assert len(shown) < 2 * HISTORY
    complete = [trial.number for trial in trials if trial.state is COMPLETE]
    farthest = [trial.number for trial in trials if trial.state is PRUNED and trial.last_epoch == 3]
    running = [trial.number for trial in trials if trial.state is RUNNING]
    newest = [trial.number for trial in trials[-HISTORY // 2 :]]
    assert {*complete[:BEST], *farthest[:BEST], *running, *newest} <= set(numbers)
    assert {*complete[-HISTORY:][:BEST]} - set(numbers)  # but not everything
    assert [trial.state for trial in shown].count(INFEASIBLE) <= HISTORY // 4 + 10


def test_best_is_the_largest_where_larger_is_better() -> None:
    trials = long_study()
    best = [trial.number for trial in trials if trial.state is COMPLETE][-BEST:]
    assert {*best} <= {trial.number for trial in BoundedHistory("maximize")(trials)}


def test_trial_is_turned_into_optuna_s_once() -> None:
    made: list[int] = []

    def freeze(trial: Trial, distributions: "dict[str, BaseDistribution]") -> FrozenTrial | None:
        made.append(trial.number)
        return create_trial(value=trial.value, params=dict(trial.configuration), distributions=distributions)

    frozen = FrozenTrials(freeze)  # type: ignore[arg-type]  # any mapping
    distributions = {"x": FloatDistribution(0.0, 1.0)}
    trials = [make_trial(number, {"x": 0.5}, value=1.0) for number in range(50)]
    frozen(trials, distributions)
    made.clear()
    changed = [*trials[:-1], make_trial(49, {"x": 0.25}, value=2.0), make_trial(50, {"x": 0.75}, value=3.0)]
    found = frozen(changed, distributions)
    assert made == [49, 50]
    assert [trial.params["x"] for trial in found[-2:]] == [0.25, 0.75]
    frozen(changed, {"x": FloatDistribution(0.0, 2.0)})
    assert len(made) == 2 + 51


def test_estimator_still_knows_in_a_long_study_where_the_good_trials_were() -> None:
    rng = np.random.default_rng(1)
    xs = rng.random(2000)
    trials = [make_trial(n, {"x": float(x)}, value=abs(float(x) - 0.3)) for n, x in enumerate(xs)]
    sampler = TpeSampler("minimize")
    found = [float(str(sampler.suggest(LINE, trials, np.random.default_rng(seed))["x"])) for seed in range(20)]
    assert np.median(np.abs(np.array(found) - 0.3)) < 0.05


def test_long_study_is_answered_alike_whatever_was_seen_before() -> None:
    trials = long_study()
    used = TpeSampler("minimize")
    for count in (100, 1500, 2999):
        used.suggest(LINE, trials[:count], np.random.default_rng(0))
    fresh = TpeSampler("minimize").suggest(LINE, trials, np.random.default_rng(3))
    assert used.suggest(LINE, trials, np.random.default_rng(3)) == fresh
