import pytest

from automl.pruners.asha import AshaPruner
from automl.pruners.median import MedianPruner
from studies.trial import TrialState
from tests.helpers.trials import make_trial, trials_with_curves
from trainers.reporting import Decision


def decide(pruner: AshaPruner | MedianPruner, reports: list[float], *others: list[float]) -> Decision:
    trial = make_trial(99, state=TrialState.RUNNING, reports=reports)
    return pruner.decide(trial, trials_with_curves(*others))


def test_asha_stops_whoever_is_not_in_the_best_third_at_a_rung() -> None:
    asha = AshaPruner("maximize", 9, min_epochs=1)
    assert asha.rungs == (1, 3)
    others = [[0.1], [0.2], [0.3], [0.4], [0.5]]
    assert decide(asha, [0.35], *others) is Decision.STOP
    assert decide(asha, [0.45], *others) is Decision.CONTINUE


@pytest.mark.parametrize("epochs, rungs", [(1, ()), (2, (1,)), (9, (2, 6)), (27, (5, 15)), (100, (20, 60))])
def test_asha_first_rung_is_after_the_warm_up(epochs: int, rungs: tuple[int, ...]) -> None:
    assert AshaPruner("maximize", epochs).rungs == rungs


def test_asha_judges_at_rungs_only() -> None:
    asha = AshaPruner("maximize", 9, min_epochs=1)
    others = [[0.9] * 9 for _ in range(5)]
    assert decide(asha, [0.9, 0.0], *others) is Decision.CONTINUE
    assert decide(asha, [0.9, 0.0, 0.0], *others) is Decision.STOP


def test_asha_waits_until_a_rung_has_seen_enough_trials() -> None:
    asha = AshaPruner("maximize", 9, min_epochs=1, min_trials=4)
    assert decide(asha, [0.0], [0.5], [0.6]) is Decision.CONTINUE
    assert decide(asha, [0.0], [0.5], [0.6], [0.7]) is Decision.STOP


def test_asha_pruned_and_running_trials_count_at_the_rungs_they_reached() -> None:
    asha = AshaPruner("maximize", 9, min_epochs=1)
    others = trials_with_curves([0.8], [0.9], state=TrialState.PRUNED)
    others += [make_trial(7, state=TrialState.RUNNING, reports=[0.7])]
    trial = make_trial(99, state=TrialState.RUNNING, reports=[0.1])
    assert asha.decide(trial, others) is Decision.STOP


@pytest.mark.parametrize("wrong", [{"eta": 1}, {"min_epochs": 0}, {"min_trials": 0}])
def test_asha_wrong_settings_are_refused_by_name(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        AshaPruner("maximize", 9, **wrong)


def test_median_stops_below_the_median_of_the_same_epoch() -> None:
    rule = MedianPruner("maximize", 9)
    others = [[0.1, v] for v in (0.1, 0.2, 0.3, 0.4, 0.5)]
    assert decide(rule, [0.0, 0.25], *others) is Decision.STOP
    assert decide(rule, [0.0, 0.35], *others) is Decision.CONTINUE
    assert decide(rule, [0.35, 0.0], *others) is Decision.CONTINUE, "the best value so far is what counts"


def test_median_leaves_the_first_trials_and_epochs_alone() -> None:
    rule = MedianPruner("maximize", 9)
    assert decide(rule, [0.0, 0.0], *[[0.9, 0.9]] * 4) is Decision.CONTINUE
    assert decide(rule, [0.0], *[[0.9, 0.9]] * 9) is Decision.CONTINUE


@pytest.mark.parametrize("wrong", [{"startup_trials": 0}, {"warmup_epochs": -1}])
def test_median_wrong_settings_are_refused_by_name(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        MedianPruner("maximize", 9, **wrong)
