import math

import pytest

from automl.objective import best_trials, is_better, loss_of, observed_value, to_loss
from studies.trial import TrialState
from tests.helpers.trials import make_trial


def test_nan_is_worse_than_everything_in_both_directions() -> None:
    assert to_loss(math.nan, "maximize") == to_loss(math.nan, "minimize") == math.inf
    assert not is_better(math.nan, -1e9, "maximize")
    assert not is_better(math.nan, 1e9, "minimize")


def test_ties_do_not_beat_and_the_earlier_trial_wins() -> None:
    assert not is_better(0.5, 0.5, "maximize")
    trials = [make_trial(3, value=0.5), make_trial(1, value=0.5), make_trial(2, value=0.4)]
    assert [trial.number for trial in best_trials(trials, "maximize", 3)] == [1, 3, 2]
    assert [trial.number for trial in best_trials(trials, "minimize", 3)] == [2, 1, 3]


def test_best_is_a_complete_trial_although_a_pruned_one_reported_better() -> None:
    complete = make_trial(0, value=0.5)
    pruned = [make_trial(n, state=TrialState.PRUNED, reports=[0.3]) for n in range(1, 5)]
    assert list(best_trials([complete, *pruned], "minimize")) == [complete]
    assert list(best_trials(pruned, "minimize")) == []


@pytest.mark.parametrize("state", [TrialState.FAILED, TrialState.INFEASIBLE, TrialState.RUNNING])
def test_trials_without_a_value_lose_infinitely(state: TrialState) -> None:
    trial = make_trial(0, state=state, reports=[0.1])
    assert observed_value(trial) is None
    assert loss_of(trial, "maximize") == math.inf


def test_pruned_trial_counts_with_its_last_report() -> None:
    trial = make_trial(0, state=TrialState.PRUNED, reports=[0.9, 0.2])
    assert observed_value(trial) == 0.2
