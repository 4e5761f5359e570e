"""Finished studies under other rules: nothing is credited that is not known, and the own rule changes nothing."""

import pytest

from automl.pruners.base import Pruner
from automl.registry import pruner_class
from automl.simulation.replay import Record, record_of, replay
from studies.trial import TrialState
from tests.automl.conftest import Search

EPOCHS = 9
TRIALS = 16


def rule(name: str) -> Pruner:
    return pruner_class(name)("minimize", EPOCHS)


def recorded(toy_search: Search, pruner: str, **fields: object) -> Record:
    outcome = toy_search(trials=TRIALS, epochs=EPOCHS, pruner=pruner, seed=4, **fields)
    return record_of(outcome.study)


@pytest.mark.parametrize("pruner", ["none", "median", "asha", "asha_promote", "hyperband"])
def test_own_rule_of_a_study_saves_and_loses_nothing(toy_search: Search, pruner: str) -> None:
    record = recorded(toy_search, pruner)
    again = replay(record, rule(pruner))
    assert again.epochs == record.trained
    assert again.worked_s == pytest.approx(record.worked_s)
    assert again.best == record.best
    assert (again.lost, again.ended_best, again.unknown) == (0.0, None, 0)


@pytest.mark.parametrize("pruner", ["median", "asha", "asha_promote"])
def test_rule_on_whole_curves_is_what_a_search_with_it_does(toy_search: Search, pruner: str) -> None:
    whole = recorded(toy_search, "none")
    would = replay(whole, rule(pruner))
    does = recorded(toy_search, pruner, study="other")
    assert would.epochs == does.trained
    assert would.best is not None and does.best is not None
    assert (would.best.number, would.best.value) == (does.best.number, does.best.value)
    assert would.unknown == 0
    assert would.lost == pytest.approx((does.best.value or 0.0) - ((whole.best and whole.best.value) or 0.0))


def test_rule_that_wants_more_than_is_known_is_credited_with_nothing(toy_search: Search) -> None:
    record = recorded(toy_search, "asha")
    cut = sum(trial.state is TrialState.PRUNED for trial in record.trials)
    more = replay(record, rule("none"))
    assert cut > 0
    assert more.unknown == cut
    assert more.epochs == record.trained
    assert more.best == record.best


def test_best_that_is_lost_is_told(toy_search: Search) -> None:
    record = recorded(toy_search, "none")
    strict = pruner_class("threshold")("minimize", EPOCHS, **{"upper": 0.3, "warmup_epochs": 0})
    found = replay(record, strict)
    assert found.ended_best == 1
    assert found.best is None
    assert found.lost is None


@pytest.mark.parametrize("workers", [1, 3])
def test_time_of_a_replay_adds_up(toy_search: Search, workers: int) -> None:
    record = recorded(toy_search, "none")
    found = replay(record, rule("asha_promote"), workers=workers, resume_s=0.0)
    assert record.is_timed
    rounding = 1 + 1e-9
    assert found.course.seconds <= found.worked_s * rounding
    assert found.worked_s <= workers * found.course.seconds * rounding


def test_failed_trials_fail_again(toy_search: Search) -> None:
    outcome = toy_search(space="tests.helpers.failing_toy", max_failures=100, sampler="grid")
    record = record_of(outcome.study)
    failed = sum(trial.state is TrialState.FAILED for trial in record.trials)
    assert failed > 0
    found = replay(record, pruner_class("none")("minimize", 4))
    assert found.epochs == record.trained
    assert found.best == record.best
    assert len(found.course.trials) == len(record.trials)
