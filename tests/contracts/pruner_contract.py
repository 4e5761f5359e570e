"""What every pruner owes; a test class inherits this and gives the pruner's name."""

import pickle
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from automl.pruners.base import Pruner
from automl.registry import pruner_class
from studies.trial import Trial, TrialState
from tests.helpers.trials import make_trial, trials_with_curves
from trainers.config import Direction
from trainers.reporting import Decision

__all__ = ["PrunerContract"]

GOES_ON = (Decision.CONTINUE, Decision.PAUSE)
"""Nobody is stopped for good."""
CURVES = [[0.1 * n + 0.05 * epoch for epoch in range(9)] for n in range(10)]


class PrunerContract:
    """Laws for a pruner on every kind of history; nine epochs, larger is better."""

    name: str
    options: Mapping[str, Any] = {}
    best: tuple[Decision, ...] = (Decision.CONTINUE,)
    """What may be decided for the best trial."""

    @pytest.fixture
    def pruner(self) -> Pruner:
        return self.made("maximize")

    def made(self, direction: Direction) -> Pruner:
        return pruner_class(self.name)(direction, 9, **self.options)

    def running(self, reports: list[float], number: int = 99) -> Trial:
        return make_trial(number, state=TrialState.RUNNING, reports=reports)

    def test_first_trial_of_a_study_goes_on(self, pruner: Pruner) -> None:
        for length in range(1, 9):
            trial = self.running([0.1 * epoch for epoch in range(length)])
            assert pruner.decide(trial, []) in GOES_ON
            assert pruner.decide(trial, [trial]) in GOES_ON

    def test_best_trial_goes_on(self, pruner: Pruner) -> None:
        others = trials_with_curves(*CURVES)
        for length in range(1, 9):
            better = [9.0 + 0.1 * epoch for epoch in range(length)]
            assert pruner.decide(self.running(better), others) in self.best

    def test_same_question_same_answer_in_any_order(self, pruner: Pruner) -> None:
        others = trials_with_curves(*CURVES)
        for length in range(1, 9):
            trial = self.running([0.3] * length)
            answer = pruner.decide(trial, others)
            assert pruner.decide(trial, others[::-1]) is answer
            assert pruner.decide(trial, [*others, trial]) is answer

    @pytest.mark.parametrize("state", [TrialState.FAILED, TrialState.INFEASIBLE, TrialState.QUEUED])
    def test_trials_without_reports_are_no_obstacle(self, pruner: Pruner, state: TrialState) -> None:
        others = [make_trial(number, state=state) for number in range(10)]
        assert pruner.decide(self.running([0.1]), others) is Decision.CONTINUE

    def test_value_that_is_no_number_is_no_obstacle(self, pruner: Pruner) -> None:
        others = trials_with_curves(*CURVES, [float("nan")] * 9, [float("inf")] * 9, [float("-inf")] * 9)
        for length in range(1, 9):
            for value in (float("nan"), float("-inf")):
                assert isinstance(pruner.decide(self.running([value] * length), others), Decision)

    def test_epochs_without_a_value_are_not_judged(self, pruner: Pruner) -> None:
        """A metric that is measured every second epoch."""
        others = trials_with_curves(*CURVES)
        for last in (2, 4, 6, 8):
            reports = {epoch: 9.0 + 0.1 * epoch for epoch in range(2, last + 1, 2)}
            assert pruner.decide(replace(self.running([]), reports=reports), others) in self.best

    def test_same_answers_after_a_journey(self, pruner: Pruner) -> None:
        again = pickle.loads(pickle.dumps(pruner))
        others = trials_with_curves(*CURVES)
        for length in range(1, 9):
            trial = self.running([0.3] * length)
            assert again.decide(trial, others) is pruner.decide(trial, others)

    def test_directions_mirror_each_other(self, pruner: Pruner) -> None:
        mirrored = self.made("minimize")
        for length in range(1, 9):
            for value in (0.0, 0.3, 0.6, 2.0):
                up = pruner.decide(self.running([value] * length), trials_with_curves(*CURVES))
                down_curves = [[-v for v in curve] for curve in CURVES]
                down = mirrored.decide(self.running([-value] * length), trials_with_curves(*down_curves))
                assert up is down

    def test_epochs_below_one_are_refused(self) -> None:
        with pytest.raises(ValueError, match="epochs=0"):
            pruner_class(self.name)("maximize", 0, **self.options)
