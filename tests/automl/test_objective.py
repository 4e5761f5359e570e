import math

import pytest

from automl.objective import loss_of, observed_value, to_loss
from studies.trial import TrialState
from tests.helpers.trials import make_trial


def test_nan_is_worse_than_everything_in_both_directions() -> None:
    assert to_loss(math.nan, "maximize") == to_loss(math.nan, "minimize") == math.inf


def test_larger_is_better_only_when_maximised() -> None:
    assert to_loss(0.9, "maximize") < to_loss(0.1, "maximize")
    assert to_loss(0.1, "minimize") < to_loss(0.9, "minimize")


@pytest.mark.parametrize("state", [TrialState.FAILED, TrialState.INFEASIBLE, TrialState.RUNNING])
def test_trials_without_a_value_lose_infinitely(state: TrialState) -> None:
    trial = make_trial(0, state=state, reports=[0.1])
    assert observed_value(trial) is None
    assert loss_of(trial, "maximize") == math.inf


def test_pruned_trial_counts_with_its_last_report() -> None:
    trial = make_trial(0, state=TrialState.PRUNED, reports=[0.9, 0.2])
    assert observed_value(trial) == 0.2
