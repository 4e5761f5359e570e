from automl.stopping import StoppingRule, failures_in_a_row
from studies.standing import Limits, Standing
from studies.trial import TrialState
from tests.helpers.trials import make_trial

BEGAN = 1000.0
UP = StoppingRule(direction="maximize", began_at=BEGAN)
DOWN = StoppingRule(direction="minimize", began_at=BEGAN)


def standing(*, searched_s: float = 0.0, stopped_at: float | None = None, **limits: float) -> Standing:
    return Standing(
        limits=Limits(timeout_s=limits.get("timeout_s"), target_value=limits.get("target_value")),
        searched_s=searched_s,
        stopped_at=stopped_at,
        now=BEGAN + 1.0,
    )


def test_stopping_timeout_counts_the_searched_time_of_the_study() -> None:
    assert UP.stop([], standing(timeout_s=10.0, searched_s=9.9)) is None
    stop = UP.stop([], standing(timeout_s=10.0, searched_s=10.0))
    assert stop is not None
    assert "10 s" in stop.reason
    assert stop.grace_s is not None


def test_stopping_target_is_reached_by_complete_trials_in_the_right_direction() -> None:
    for rule, target, short, enough in ((UP, 0.9, 0.89, 0.9), (DOWN, 0.1, 0.2, 0.05)):
        assert rule.stop([make_trial(0, value=short)], standing(target_value=target)) is None
        pruned = make_trial(1, state=TrialState.PRUNED, reports=[enough])
        assert rule.stop([make_trial(0, value=short), pruned], standing(target_value=target)) is None
        stop = rule.stop([make_trial(0, value=short), make_trial(1, value=enough)], standing(target_value=target))
        assert stop is not None
        assert "trial 1" in stop.reason
        assert stop.grace_s is None


def test_stopping_obeys_only_a_wish_that_came_after_the_run_began() -> None:
    assert UP.stop([], standing(stopped_at=BEGAN - 0.1)) is None
    stop = UP.stop([], standing(stopped_at=BEGAN + 0.1))
    assert stop is not None
    assert "automl stop" in stop.reason


def test_failures_in_a_row_count_back_from_the_last_ended_trial() -> None:
    failed = [make_trial(n, state=TrialState.FAILED) for n in (1, 2)]
    assert failures_in_a_row([], 0.0) == 0
    assert failures_in_a_row([make_trial(0, value=0.1), *failed], 0.0) == 2
    assert failures_in_a_row([*failed, make_trial(3, state=TrialState.PRUNED, reports=[1.0])], 0.0) == 0
    assert failures_in_a_row([*failed, make_trial(3, state=TrialState.INFEASIBLE)], 0.0) == 2
    assert failures_in_a_row([*failed, make_trial(3, state=TrialState.RUNNING)], 0.0) == 2


def test_failures_before_this_run_do_not_count() -> None:
    failed = [make_trial(n, state=TrialState.FAILED) for n in (0, 1, 2)]
    last = failed[-1].ended_at
    assert last is not None
    assert failures_in_a_row(failed, last.timestamp()) == 1
    assert failures_in_a_row(failed, last.timestamp() + 1.0) == 0
