"""Losses of single items, against their formulas."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from trainers.config import LossName, TrainConfig
from trainers.errors import UserCodeError
from trainers.loss_choice import CLASS_LOSSES, NUMBER_LOSSES, loss_mistakes
from trainers.losses import Loss, build_loss, build_number_loss
from trainers.losses.binary import binary
from trainers.losses.class_weights import balanced_class_weights
from trainers.losses.cross_entropy import cross_entropy
from trainers.losses.focal import focal
from trainers.losses.huber import huber
from trainers.losses.mse import mse
from trainers.losses.smooth_l1 import smooth_l1

CPU = torch.device("cpu")
LABELS_N = torch.tensor([0, 1, 2, 1])
LOGITS_NK = torch.tensor([[2.0, 0.0, -1.0], [0.5, 0.5, 0.5], [3.0, 1.0, -4.0], [-1.0, 2.0, 0.0]])
WEIGHT_K = torch.tensor([0.5, 1.0, 2.0])


def class_loss(name: LossName, **settings: Any) -> Loss:
    return build_loss(TrainConfig(loss=name, **settings), LABELS_N.numpy(), 3, CPU)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_summed_loss_divided_by_the_items_is_the_mean(smoothing: float) -> None:
    mean = functional.cross_entropy(LOGITS_NK, LABELS_N, label_smoothing=smoothing)
    losses_N = cross_entropy(LOGITS_NK, LABELS_N, label_smoothing=smoothing)
    assert losses_N.sum().item() / 4 == pytest.approx(mean.item(), rel=1e-6)


@pytest.mark.parametrize("name", CLASS_LOSSES)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weights", ["none", "balanced"])
def test_shares_of_one_class_are_that_class(name: LossName, smoothing: float, weights: str) -> None:
    loss = class_loss(name, label_smoothing=smoothing, class_weights=weights)
    shares_NK = functional.one_hot(LABELS_N, 3).float()
    torch.testing.assert_close(loss(LOGITS_NK, shares_NK), loss(LOGITS_NK, LABELS_N))


@pytest.mark.parametrize("name", ["cross_entropy", "binary"])
def test_loss_of_mixed_classes_is_the_mix_of_the_losses(name: LossName) -> None:
    loss = class_loss(name, label_smoothing=0.1)
    one, other = functional.one_hot(LABELS_N, 3).float(), functional.one_hot((LABELS_N + 1) % 3, 3).float()
    mixed = loss(LOGITS_NK, 0.3 * one + 0.7 * other)
    torch.testing.assert_close(mixed, 0.3 * loss(LOGITS_NK, one) + 0.7 * loss(LOGITS_NK, other))


@pytest.mark.parametrize("name", CLASS_LOSSES)
def test_class_losses_are_float32_and_know_no_items(name: LossName) -> None:
    loss = class_loss(name)
    assert loss(LOGITS_NK.bfloat16(), LABELS_N).dtype == torch.float32
    assert loss(LOGITS_NK[:0], LABELS_N[:0]).shape == (0,)


@pytest.mark.parametrize("loss", [cross_entropy, binary, partial(focal, gamma=2.0)], ids=["cross", "binary", "focal"])
@pytest.mark.parametrize("target", [-1, -100, 3])
def test_no_class_loss_leaves_an_item_out_in_silence(loss: Loss, target: int) -> None:
    with pytest.raises((IndexError, RuntimeError)):
        loss(torch.zeros(2, 3), torch.tensor([0, target]))


def test_class_weights_are_factors_of_the_items_of_a_class() -> None:
    functions: list[Callable[..., torch.Tensor]] = [cross_entropy, binary, lambda *a, **k: focal(*a, gamma=2.0, **k)]
    for function in functions:
        plain, weighted = function(LOGITS_NK, LABELS_N), function(LOGITS_NK, LABELS_N, weight_K=WEIGHT_K)
        torch.testing.assert_close(weighted, plain * WEIGHT_K[LABELS_N])


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40))
def test_balanced_weights_have_mean_one_and_equal_sums(labels: list[int]) -> None:
    labels_N = np.array(labels, dtype=np.int64)
    weights_K = balanced_class_weights(labels_N, 5)
    assert weights_K[labels_N].mean() == pytest.approx(1.0, rel=1e-5)
    sums = [weights_K[labels_N[labels_N == label]].sum() for label in set(labels)]
    assert sums == pytest.approx([sums[0]] * len(sums), rel=1e-5)
    assert weights_K[4] == 1.0


def test_balanced_weights_reach_the_loss() -> None:
    plain, balanced = class_loss("auto"), class_loss("auto", class_weights="balanced")
    factors = balanced(LOGITS_NK, LABELS_N) / plain(LOGITS_NK, LABELS_N)
    torch.testing.assert_close(factors, torch.tensor([4 / 3, 2 / 3, 4 / 3, 2 / 3]))


def test_focal_loss_without_focus_is_the_cross_entropy() -> None:
    choices: list[dict[str, Any]] = [{}, {"label_smoothing": 0.3}, {"weight_K": WEIGHT_K}]
    for settings in choices:
        expected = cross_entropy(LOGITS_NK, LABELS_N, **settings)
        torch.testing.assert_close(focal(LOGITS_NK, LABELS_N, gamma=0.0, **settings), expected)


def test_focal_loss_of_two_classes_is_that_of_the_paper() -> None:
    probability = 0.9
    logits_NK = torch.tensor([[0.0, math.log(probability / (1 - probability))]])
    value = focal(logits_NK, torch.tensor([1]), gamma=2.0).item()
    assert value == pytest.approx((1 - probability) ** 2 * -math.log(probability), rel=1e-5)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 2.0])
def test_focal_loss_has_finite_gradients_where_all_is_sure(gamma: float) -> None:
    logits_NK = torch.tensor([[200.0, 0.0], [0.0, 200.0]], requires_grad=True)
    (gradient_NK,) = torch.autograd.grad(focal(logits_NK, torch.tensor([0, 0]), gamma=gamma).sum(), logits_NK)
    assert torch.isfinite(gradient_NK).all()


def test_binary_loss_of_two_classes_is_that_of_their_softmax() -> None:
    logits_NK, labels_N = LOGITS_NK[:, :2], torch.tensor([0, 1, 1, 0])
    for smoothing in (0.0, 0.2):
        torch.testing.assert_close(
            binary(logits_NK, labels_N, label_smoothing=smoothing),
            cross_entropy(logits_NK, labels_N, label_smoothing=smoothing),
        )


def test_binary_loss_of_many_classes_asks_for_each() -> None:
    value = binary(torch.tensor([[1.0, -2.0, 0.5]]), torch.tensor([0])).item()
    expected = math.log1p(math.exp(-1.0)) + math.log1p(math.exp(-2.0)) + math.log1p(math.exp(0.5))
    assert value == pytest.approx(expected, rel=1e-5)


def test_losses_of_numbers_are_their_formulas() -> None:
    errors_N = torch.tensor([0.0, 0.5, -0.5, 1.2, -3.0])
    targets_N = torch.full((5,), 2.0)
    for answers in (targets_N + errors_N, (targets_N + errors_N).reshape(5, 1)):
        assert mse(answers, targets_N).tolist() == pytest.approx([0.0, 0.25, 0.25, 1.44, 9.0], rel=1e-5)
        assert smooth_l1(answers, targets_N).tolist() == pytest.approx([0.0, 0.125, 0.125, 0.7, 2.5], rel=1e-5)
        assert huber(answers, targets_N).tolist() == pytest.approx(
            [0.0, 0.125, 0.125, 0.72, 1.345 * (3.0 - 1.345 / 2)], rel=1e-5
        )


@pytest.mark.parametrize(
    ("name", "function"), [("auto", mse), ("mse", mse), ("smooth_l1", smooth_l1), ("huber", huber)]
)
def test_number_losses_by_name(name: LossName, function: Loss) -> None:
    loss = build_number_loss(TrainConfig(loss=name))
    assert loss is function
    assert loss(torch.zeros(3, 1, dtype=torch.bfloat16), torch.ones(3)).dtype == torch.float32
    assert loss(torch.zeros(0, 1), torch.zeros(0)).shape == (0,)


@pytest.mark.parametrize("name", get_args(LossName))
def test_every_loss_is_for_classes_or_for_numbers(name: LossName) -> None:
    training = TrainConfig(loss=name)
    if name in CLASS_LOSSES:
        class_loss(name)
    else:
        with pytest.raises(UserCodeError, match=f"loss '{name}' is not for classes; give one of auto, cross_entropy"):
            class_loss(name)
    if name in NUMBER_LOSSES:
        build_number_loss(training)
    else:
        with pytest.raises(UserCodeError, match=f"loss '{name}' is not for numbers; give one of auto, mse"):
            build_number_loss(training)


def test_all_that_does_not_fit_numbers_is_said_at_once() -> None:
    training = TrainConfig(loss="focal", label_smoothing=0.1, class_weights="balanced")
    assert loss_mistakes(training, "classes") == []
    assert loss_mistakes(training, "numbers") == [
        "loss 'focal' is not for numbers; give one of auto, mse, smooth_l1, huber",
        "label_smoothing=0.1: numbers have no labels to smooth; give 0",
        "class_weights='balanced': numbers have no classes; give 'none'",
    ]
    with pytest.raises(UserCodeError, match=r"focal.*label_smoothing.*class_weights"):
        build_number_loss(training)
