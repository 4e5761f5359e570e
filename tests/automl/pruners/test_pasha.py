"""Progressive successive halving: the next rung opens when the order changes, and noise is no change."""

from collections.abc import Sequence

import numpy as np

from automl.executors.simulated import Measured, simulate
from automl.pruners.pasha import PashaPruner, _noise
from automl.registry import pruner_class
from automl.samplers.random import RandomSampler
from automl.scheduler import Scheduler
from search_spaces.parameters import Float
from search_spaces.space import SearchSpace
from studies.trial import Trial, TrialState
from tests.helpers.trials import make_trial

EPOCHS = 81
SPACE = SearchSpace("line", {"x": Float(low=0.0, high=1.0)})


def pruner() -> PashaPruner:
    return PashaPruner("minimize", EPOCHS, min_epochs=1, eta=3)


def at_rest(number: int, curve: Sequence[float]) -> Trial:
    return make_trial(number, state=TrialState.PAUSED, reports=list(curve))


def promoted(*trials: Trial, is_last: bool = False) -> int | None:
    chosen = pruner().promoted(trials, trials, is_last=is_last)
    return None if chosen is None else chosen.number


def test_rungs_above_the_second_stay_closed_while_the_order_stays() -> None:
    straight = [at_rest(number, [0.1 * number] * 3) for number in range(3)]
    assert promoted(*straight) is None
    assert promoted(*straight, is_last=True) == 0


def test_another_order_opens_the_next_rung() -> None:
    turned = [at_rest(0, [0.1, 0.4, 0.5]), at_rest(1, [0.2, 0.2, 0.2]), at_rest(2, [0.3, 0.3, 0.3])]
    assert promoted(*turned) == 1


def test_order_within_the_noise_is_the_same_order() -> None:
    """Two curves that cross again and again, and stand in another order at the second rung."""
    crossing = [at_rest(0, [0.20, 0.23, 0.21]), at_rest(1, [0.21, 0.20, 0.22]), at_rest(2, [0.9, 0.9, 0.9])]
    assert promoted(*crossing) is None
    crossed_once = [at_rest(0, [0.20, 0.23, 0.23]), at_rest(1, [0.21, 0.20, 0.20]), at_rest(2, [0.9, 0.9, 0.9])]
    assert promoted(*crossed_once) == 1


def test_noise_is_how_far_apart_crossing_curves_end() -> None:
    assert _noise(np.array([[0.0, 1.0, 0.0], [0.5, 0.5, 0.5]])) == 0.5
    assert _noise(np.array([[0.0, 1.0, 1.0], [0.5, 0.5, 0.5]])) == 0.0  # once


def searched(name: str) -> tuple[int, float]:
    """Epochs in all, and the best value, where the order at the first epoch is that at the last."""
    scheduler = Scheduler(
        space=SPACE,
        sampler=RandomSampler("minimize"),
        pruner=pruner_class(name)("minimize", EPOCHS, **{"min_epochs": 1}),
        seed=0,
    )
    found = simulate(
        scheduler, lambda configuration, _, epoch: Measured(float(configuration["x"] or 0.0) + 1.0 / epoch), trials=60
    )
    complete = [trial.value for trial in found.trials if trial.value is not None]
    return found.epochs, min(complete)


def test_clear_order_takes_less_training_than_all_rungs_and_finds_the_same() -> None:
    (less, value), (more, usual) = searched("pasha"), searched("asha_promote")
    assert value == usual
    assert less < 0.7 * more
