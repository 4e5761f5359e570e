"""What every pruner owes; a test class inherits this and gives the pruner's name."""

import pytest

from automl.pruners.base import Pruner
from automl.registry import pruner_class
from studies.trial import Trial, TrialState
from tests.helpers.trials import make_trial, trials_with_curves
from trainers.reporting import Decision

__all__ = ["PrunerContract"]

CURVES = [[0.1 * n + 0.05 * epoch for epoch in range(9)] for n in range(10)]


class PrunerContract:
    """Laws for a pruner on every kind of history; nine epochs, larger is better."""

    name: str

    @pytest.fixture
    def pruner(self) -> Pruner:
        return pruner_class(self.name)("maximize", 9)

    def running(self, reports: list[float], number: int = 99) -> Trial:
        return make_trial(number, state=TrialState.RUNNING, reports=reports)

    def test_first_trial_of_a_study_goes_on(self, pruner: Pruner) -> None:
        for length in range(1, 9):
            trial = self.running([0.0] * length)
            assert pruner.decide(trial, []) is Decision.CONTINUE
            assert pruner.decide(trial, [trial]) is Decision.CONTINUE

    def test_best_trial_goes_on(self, pruner: Pruner) -> None:
        others = trials_with_curves(*CURVES)
        for length in range(1, 9):
            assert pruner.decide(self.running([9.0] * length), others) is Decision.CONTINUE

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

    def test_directions_mirror_each_other(self, pruner: Pruner) -> None:
        mirrored = pruner_class(self.name)("minimize", 9)
        for length in range(1, 9):
            for value in (0.0, 0.3, 0.6, 2.0):
                up = pruner.decide(self.running([value] * length), trials_with_curves(*CURVES))
                down_curves = [[-v for v in curve] for curve in CURVES]
                down = mirrored.decide(self.running([-value] * length), trials_with_curves(*down_curves))
                assert up is down

    def test_epochs_below_one_are_refused(self) -> None:
        with pytest.raises(ValueError, match="epochs=0"):
            pruner_class(self.name)("maximize", 0)
