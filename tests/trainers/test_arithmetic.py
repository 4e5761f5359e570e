"""The pure parts: schedule, best epoch, metrics, finiteness, seeds."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainers.distributed import Ranks
from trainers.early_stopping import BestEpoch
from trainers.errors import NonFiniteLossError
from trainers.finite import check_finite
from trainers.losses.cross_entropy import cross_entropy
from trainers.metrics import ClassificationMeter, classification_metrics
from trainers.schedules.cosine import warmup_cosine
from trainers.seeds import Purpose, random_generator, torch_seed


def test_schedule_rises_to_the_peak_and_falls_to_zero() -> None:
    factors = [warmup_cosine(step, 10, 4) for step in range(11)]
    assert factors[:4] == [0.25, 0.5, 0.75, 1.0]
    assert factors[4] == 1.0
    assert factors[7] == pytest.approx(0.5)
    assert factors[10] == 0.0
    assert factors[4:] == sorted(factors[4:], reverse=True)


@given(st.integers(1, 50), st.data())
def test_schedule_stays_in_bounds(total: int, data: st.DataObject) -> None:
    warmup = data.draw(st.integers(0, total))
    step = data.draw(st.integers(0, 2 * total))
    assert 0.0 <= warmup_cosine(step, total, warmup) <= 1.0


@pytest.mark.parametrize("arguments", [(-1, 5, 0), (0, 0, 0), (0, 5, 6), (0, 5, -1)])
def test_schedule_refuses_impossible_numbers(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="need step >= 0"):
        warmup_cosine(*arguments)


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


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40))
def test_metrics_agree_with_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    from sklearn.metrics import accuracy_score, f1_score, recall_score

    truth, answers = [list(column) for column in zip(*pairs, strict=True)]
    confusion = torch.zeros(5, 5)
    for true, answer in pairs:
        confusion[true, answer] += 1
    metrics = classification_metrics(confusion, 3.0)
    assert metrics["accuracy"] == pytest.approx(accuracy_score(truth, answers))
    recall = recall_score(truth, answers, labels=sorted(set(truth)), average="macro", zero_division=0)
    assert metrics["balanced_accuracy"] == pytest.approx(recall)
    assert metrics["f1_macro"] == pytest.approx(f1_score(truth, answers, average="macro", zero_division=0))
    assert metrics["loss"] == 3.0 / len(pairs)


def test_meter_adds_batches_and_counts_empty_ones_as_nothing() -> None:
    generator = torch.Generator().manual_seed(0)
    logits, labels = torch.randn(10, 3, generator=generator), torch.arange(10) % 3
    whole, parts = (ClassificationMeter(3, torch.device("cpu")) for _ in range(2))
    whole.add(logits, labels)
    for part in (slice(0, 4), slice(4, 4), slice(4, 10)):
        parts.add(logits[part], labels[part])
    assert parts.total(Ranks.alone("cpu")) == pytest.approx(whole.total(Ranks.alone("cpu")), abs=1e-6)


def test_metrics_of_no_items_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one item"):
        ClassificationMeter(3, torch.device("cpu")).total(Ranks.alone("cpu"))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_summed_loss_divided_by_the_items_is_the_mean(smoothing: float) -> None:
    logits, labels = torch.randn(6, 4, generator=torch.Generator().manual_seed(1)), torch.arange(6) % 4
    mean = torch.nn.functional.cross_entropy(logits, labels, label_smoothing=smoothing)
    assert cross_entropy(logits, labels, label_smoothing=smoothing).sum().item() / 6 == pytest.approx(
        mean.item(), rel=1e-6
    )
    assert cross_entropy(logits[:0], labels[:0], label_smoothing=smoothing).sum().item() == 0.0


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_value_outside_the_numbers_is_refused_with_its_circumstances(value: float) -> None:
    with pytest.raises(NonFiniteLossError) as caught:
        check_finite(
            value, name="loss", step=412, epoch=3, learning_rate=0.1, precision="fp16", checkpoint="t/epoch-0002.pt"
        )
    assert str(caught.value) == (
        f"loss is {value} at step 412 (epoch 3, learning_rate=0.1, precision=fp16); "
        "last good checkpoint: t/epoch-0002.pt"
    )
    assert caught.value.cause == "non_finite"


def test_streams_differ_by_purpose_seed_and_position_and_repeat() -> None:
    keys = [(purpose, seed, position) for purpose in Purpose for seed in (-1, 0, 1) for position in (0, 1, 2)]
    seeds = [torch_seed(purpose, seed, position) for purpose, seed, position in keys]
    assert len(set(seeds)) == len(keys)
    assert all(0 <= seed < 2**63 for seed in seeds)
    draws = [random_generator(Purpose.ORDER, 5, 1).random(3) for _ in range(2)]
    np.testing.assert_array_equal(draws[0], draws[1])
