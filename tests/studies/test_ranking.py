"""Which trials are the best, and which configuration is, where some were trained several times."""

import pytest

from studies.ranking import best_on_average
from studies.trial import TrialState
from tests.helpers.trials import make_trial


def test_best_on_average_is_not_the_luckiest() -> None:
    values = [("lucky", 0.99), ("lucky", 0.80), ("good", 0.91), ("good", 0.92), ("good", 0.90), ("once", 0.97)]
    trials = [make_trial(number, {"kind": kind}, value=value) for number, (kind, value) in enumerate(values)]
    found = best_on_average(trials, "maximize")
    assert found is not None
    assert [trial.number for trial in found.trials] == [3, 2, 4]
    assert found.mean == pytest.approx(0.91)
    worst = best_on_average(trials, "minimize")
    assert worst is not None and worst.trials[0].configuration == {"kind": "lucky"}


def test_only_complete_trainings_are_averaged() -> None:
    trials = [
        make_trial(0, {"kind": "a"}, value=0.9),
        make_trial(1, {"kind": "a"}, state=TrialState.PRUNED, reports=[0.1]),
        make_trial(2, {"kind": "b"}, value=0.8),
    ]
    assert best_on_average(trials, "maximize") is None
    assert best_on_average([], "maximize") is None
