"""The pure parts: best epoch, finiteness, seeds."""

import math

import numpy as np
import pytest

from trainers.early_stopping import BestEpoch
from trainers.errors import NonFiniteLossError
from trainers.finite import check_finite
from trainers.seeds import Purpose, random_generator, torch_seed


def test_best_epoch_is_the_first_of_equals_and_follows_the_direction() -> None:
    highest = BestEpoch(direction="maximize").after(1, 0.2).after(2, 0.5).after(3, 0.5).after(4, 0.1)
    lowest = BestEpoch(direction="minimize").after(1, 0.5).after(2, 0.2).after(3, 0.9)
    assert (highest.value, highest.epoch) == (0.5, 2)
    assert (lowest.value, lowest.epoch) == (0.2, 2)


def test_patience_counts_epochs_without_a_large_enough_gain() -> None:
    state = BestEpoch(direction="maximize", patience=2, min_change=0.1)
    exhausted = []
    for epoch, value in enumerate([0.5, 0.55, 0.59, 0.8], start=1):
        state = state.after(epoch, value)
        exhausted.append(state.is_exhausted)
    assert exhausted == [False, False, True, False]
    assert (state.value, state.epoch) == (0.8, 4)


def test_best_epoch_state_restores() -> None:
    state = BestEpoch(direction="minimize", patience=3).after(1, 0.5).after(2, 0.7)
    assert BestEpoch(direction="minimize", patience=3).restored(state.state()) == state


def test_without_patience_hope_is_never_lost() -> None:
    state = BestEpoch(direction="maximize")
    for epoch in range(1, 100):
        state = state.after(epoch, 0.0)
    assert not state.is_exhausted


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_value_outside_the_numbers_is_refused_with_its_circumstances(value: float) -> None:
    with pytest.raises(NonFiniteLossError) as caught:
        check_finite(
            value, name="loss", step=412, epoch=3, learning_rate=0.1, precision="fp16", checkpoint="t/epoch-0002.pt"
        )
    assert str(caught.value).startswith(
        f"loss is {value} at step 412 (epoch 3, learning_rate=0.1, precision=fp16); "
        "last good checkpoint: t/epoch-0002.pt; try a smaller learning_rate"
    )
    assert caught.value.cause == "non_finite"


def test_streams_differ_by_purpose_seed_and_position_and_repeat() -> None:
    keys = [(purpose, seed, position) for purpose in Purpose for seed in (-1, 0, 1) for position in (0, 1, 2)]
    seeds = [torch_seed(purpose, seed, position) for purpose, seed, position in keys]
    assert len(set(seeds)) == len(keys)
    assert all(0 <= seed < 2**63 for seed in seeds)
    draws = [random_generator(Purpose.ORDER, 5, 1).random(3) for _ in range(2)]
    np.testing.assert_array_equal(draws[0], draws[1])
