"""Rules that compare with a share of the others, with bounds, or with a trial's own past."""

from typing import Any

import pytest

from automl.pruners.patience import PatiencePruner
from automl.pruners.percentile import PercentilePruner
from automl.pruners.threshold import ThresholdPruner
from studies.trial import TrialState
from tests.helpers.trials import make_trial, trials_with_curves
from trainers.reporting import Decision

STOP, CONTINUE = Decision.STOP, Decision.CONTINUE


def running(*reports: float) -> Any:
    return make_trial(99, state=TrialState.RUNNING, reports=reports)


def test_percentile_keeps_the_best_quarter() -> None:
    rule = PercentilePruner("maximize", 9)
    others = trials_with_curves(*[[0.0, 0.1 * at] for at in range(9)])
    assert rule.decide(running(0.0, 0.65), others) is CONTINUE
    assert rule.decide(running(0.0, 0.55), others) is STOP


def test_percentile_judges_at_its_intervals() -> None:
    rule = PercentilePruner("minimize", 9, interval_epochs=3)
    others = trials_with_curves(*[[0.1] * 9] * 5)
    decisions = [rule.decide(running(*[0.9] * epoch), others) for epoch in range(1, 9)]
    assert decisions == [CONTINUE, STOP, CONTINUE, CONTINUE, STOP, CONTINUE, CONTINUE, STOP]


def test_every_wrong_setting_of_percentile_is_named() -> None:
    with pytest.raises(ValueError, match=r"percentile=100.0 .*startup_trials=0 .*interval_epochs=0"):
        PercentilePruner("minimize", 9, percentile=100.0, startup_trials=0, interval_epochs=0)


@pytest.mark.parametrize(
    ("value", "decision"),
    [(0.05, STOP), (0.1, CONTINUE), (0.9, CONTINUE), (0.95, STOP), (float("nan"), STOP), (float("inf"), STOP)],
)
def test_threshold_stops_what_is_outside(value: float, decision: Decision) -> None:
    assert ThresholdPruner("maximize", 9, lower=0.1, upper=0.9).decide(running(value), []) is decision


def test_threshold_leaves_the_warm_up_alone() -> None:
    rule = ThresholdPruner("minimize", 9, upper=2.0, warmup_epochs=2)
    assert rule.decide(running(9.0, 9.0), []) is CONTINUE
    assert rule.decide(running(9.0, 9.0, 9.0), []) is STOP


@pytest.mark.parametrize("wrong", [{}, {"lower": 1.0, "upper": 1.0}, {"lower": 0.0, "warmup_epochs": -1}])
def test_threshold_without_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"lower|warmup_epochs"):
        ThresholdPruner("maximize", 9, **wrong)


def test_patience_counts_from_the_last_improvement() -> None:
    rule = PatiencePruner("minimize", 20, patience=3, min_change=0.1)
    assert rule.decide(running(1.0, 0.8, 0.75, 0.74), []) is CONTINUE
    assert rule.decide(running(1.0, 0.8, 0.75, 0.74, 0.73), []) is STOP
    assert rule.decide(running(1.0, 0.8, 0.75, 0.74, 0.6), []) is CONTINUE


def test_patience_ends_what_never_was_a_number() -> None:
    assert PatiencePruner("maximize", 20, patience=2).decide(running(*[float("nan")] * 2), []) is STOP


def test_every_wrong_setting_of_patience_is_named() -> None:
    with pytest.raises(ValueError, match=r"patience=0 .*min_change=-1.0"):
        PatiencePruner("maximize", 9, patience=0, min_change=-1.0)
