from automl.stopping import StoppingRule, failures_in_a_row
from studies.trial import TrialState
from tests.helpers.trials import make_trial


def test_stopping_timeout_is_in_seconds_of_this_run() -> None:
    rule = StoppingRule(direction="maximize", timeout_s=10)
    assert rule.reason(None, 9.9) is None
    assert "10 s" in str(rule.reason(None, 10.0))


def test_stopping_target_is_reached_by_complete_trials_in_the_right_direction() -> None:
    up = StoppingRule(direction="maximize", target_value=0.9)
    down = StoppingRule(direction="minimize", target_value=0.1)
    assert up.reason(make_trial(0, value=0.89), 0) is None
    assert "trial 0" in str(up.reason(make_trial(0, value=0.9), 0))
    assert down.reason(make_trial(0, value=0.2), 0) is None
    assert "trial 0" in str(down.reason(make_trial(0, value=0.05), 0))


def test_failures_in_a_row_count_back_from_the_last_ended_trial() -> None:
    failed = [make_trial(n, state=TrialState.FAILED) for n in (1, 2)]
    assert failures_in_a_row([]) == 0
    assert failures_in_a_row([make_trial(0, value=0.1), *failed]) == 2
    assert failures_in_a_row([*failed, make_trial(3, state=TrialState.PRUNED, reports=[1.0])]) == 0
    assert failures_in_a_row([*failed, make_trial(3, state=TrialState.INFEASIBLE)]) == 2
    assert failures_in_a_row([*failed, make_trial(3, state=TrialState.RUNNING)]) == 2
