"""Successive halving with promotion: who rests, who goes on, and who is left when nothing new is started."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from automl.pruners.asha_promote import AshaPromotePruner
from studies.trial import Trial, TrialState
from tests.helpers.trials import make_trial
from trainers.reporting import Decision

PAUSED, COMPLETE, FAILED = TrialState.PAUSED, TrialState.COMPLETE, TrialState.FAILED


def pruner(eta: int = 3) -> AshaPromotePruner:
    return AshaPromotePruner("minimize", 27, min_epochs=3, eta=eta)


def at_epoch(number: int, epoch: int, loss: float, state: TrialState = PAUSED) -> Trial:
    return make_trial(number, state=state, reports=[loss] * epoch, value=loss if state is COMPLETE else None)


def promoted(trials: Sequence[Trial], *, is_last: bool = False) -> int | None:
    resting = [trial for trial in trials if trial.state is PAUSED]
    chosen = pruner().promoted(trials, resting, is_last=is_last)
    return None if chosen is None else chosen.number


def test_rungs_are_powers_of_eta() -> None:
    assert pruner().rungs == (3, 9)
    assert AshaPromotePruner("minimize", 9).rungs == (2, 6)


@pytest.mark.parametrize("eta", [0, 1])
def test_reduction_factor_below_two_is_refused(eta: int) -> None:
    with pytest.raises(ValueError, match="eta="):
        pruner(eta)


def test_nobody_is_promoted_before_there_are_eta_to_choose_from() -> None:
    assert promoted([at_epoch(0, 3, 0.5), at_epoch(1, 3, 0.4)]) is None


def test_best_third_of_a_rung_is_promoted_the_best_first() -> None:
    trials = [at_epoch(number, 3, loss) for number, loss in enumerate([0.5, 0.1, 0.4, 0.3, 0.2, 0.6])]
    assert promoted(trials) == 1
    gone = [replace(trial, state=TrialState.RUNNING) if trial.number == 1 else trial for trial in trials]
    assert promoted(gone) == 4
    both_gone = [replace(trial, state=TrialState.RUNNING) if trial.number in (1, 4) else trial for trial in trials]
    assert promoted(both_gone) is None


def test_highest_rung_goes_first() -> None:
    low = [at_epoch(number, 3, 0.1 * number) for number in range(3)]
    high = [at_epoch(number, 9, 0.9 + 0.01 * number) for number in range(3, 6)]
    assert promoted([*low, *high]) == 3


def test_tie_goes_to_the_older_trial() -> None:
    assert promoted([at_epoch(number, 3, 0.5) for number in range(3)]) == 0


def test_failed_trial_takes_nobody_s_place() -> None:
    trials = [at_epoch(0, 3, 0.0, FAILED), *(at_epoch(number, 3, 0.1 * number) for number in range(1, 4))]
    assert promoted(trials) == 1


def test_one_trial_of_each_rung_goes_on_when_nothing_new_is_started() -> None:
    assert promoted([at_epoch(0, 3, 0.5), at_epoch(1, 3, 0.4)], is_last=True) == 1
    assert promoted([at_epoch(0, 3, 0.5), at_epoch(1, 9, 0.4)], is_last=True) == 1
    assert promoted([at_epoch(0, 3, 0.5), at_epoch(1, 27, 0.4, COMPLETE)], is_last=True) is None


def test_trial_rests_at_a_rung_and_nowhere_else() -> None:
    assert [epoch for epoch in range(28) if pruner().rests(at_epoch(0, epoch, 0.5))] == [3, 9]


def test_trial_that_would_be_promoted_at_once_does_not_rest() -> None:
    others = [at_epoch(0, 3, 0.5), at_epoch(1, 3, 0.4)]
    running = at_epoch(2, 3, 0.1, TrialState.RUNNING)
    assert pruner().decide(running, [*others, running]) is Decision.CONTINUE
    assert pruner().decide(at_epoch(2, 3, 0.9, TrialState.RUNNING), others) is Decision.PAUSE
    assert pruner().decide(at_epoch(2, 2, 0.9, TrialState.RUNNING), others) is Decision.CONTINUE


def test_trial_rests_where_a_better_one_waits_at_a_higher_rung() -> None:
    waiting = [at_epoch(number, 9, 0.1) for number in range(3)]
    running = at_epoch(3, 3, 0.01, TrialState.RUNNING)
    assert pruner().decide(running, [*waiting, running]) is Decision.PAUSE
