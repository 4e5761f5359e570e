"""Warnings come where something is wrong, with its numbers and what to do, and nowhere else."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.trainers.training import Script, tiny_task
from trainers.advice import EpochFacts, Sign, advice_after, advice_before
from trainers.data.arrays import ImageData
from trainers.distributed import Ranks
from trainers.tasks import load_trainer

GIB = 2**30
FALLING = [2.0, 1.0, 0.5, 0.4, 0.3, 0.25, 0.2, 0.18]


def epochs(train: Sequence[float] = FALLING, validation: Sequence[float] | None = None) -> list[EpochFacts]:
    """A training in good order, apart from its losses."""
    return [
        EpochFacts(
            epoch=index + 1,
            train_loss=loss,
            validation_loss=loss if validation is None else validation[index],
            gradient_norm=1.0,
            data_wait_share=0.05,
            memory_bytes=4 * GIB,
            memory_limit_bytes=8 * GIB,
        )
        for index, loss in enumerate(train)
    ]


def signs(history: Sequence[EpochFacts]) -> set[Sign]:
    return {advice.sign for advice in advice_after(history)}


def text(history: Sequence[EpochFacts]) -> str:
    (advice,) = advice_after(history)
    return advice.text


def changed(history: Sequence[EpochFacts], last: int, **facts: object) -> list[EpochFacts]:
    """The history with other facts in its last epochs."""
    return [*history[:-last], *(replace(epoch, **facts) for epoch in history[-last:])]  # type: ignore[arg-type]  # test


@pytest.mark.parametrize("length", range(1, len(FALLING) + 1))
def test_training_in_good_order_has_no_warning(length: int) -> None:
    assert signs(epochs()[:length]) == set()


def test_memory_above_ninety_percent_warns() -> None:
    assert signs(changed(epochs(), 1, memory_bytes=int(7.2 * GIB))) == set()
    assert text(changed(epochs(), 1, memory_bytes=int(7.5 * GIB))) == (
        "memory is nearly full: 7.5 of 8.0 GiB (94 %) after epoch 8; more accumulate or a smaller batch_size needs less"
    )


def test_device_that_waits_for_data_in_two_epochs_warns() -> None:
    assert signs(changed(epochs(), 1, data_wait_share=0.5)) == set(), "one epoch may be chance"
    assert signs(changed(epochs(), 2, data_wait_share=0.5, utilisation_percent=95.0)) == set()
    slow = changed(epochs(), 2, data_wait_share=0.5, utilisation_percent=40.0)
    waits = "training waits for data 50 % of the time (epoch 8); "
    assert text(slow) == f"{waits}fewer or cheaper changes of the items help, or a larger batch_size"
    assert text(changed(slow, 2, reads_items=True)).startswith(f"{waits}more loader_workers"), "only they take them"


def test_epoch_of_which_most_steps_were_skipped_warns() -> None:
    assert signs(changed(epochs(), 1, steps=10, steps_made=5)) == set()
    assert text(changed(epochs(), 1, steps=10, steps_made=4)) == (
        "gradients overflow: 6 of 10 steps of epoch 8 were skipped; precision bf16 or fp32, or a smaller learning_rate"
    )


def test_batch_that_is_larger_than_the_data_warns() -> None:
    assert advice_before(40, 40) == []
    (advice,) = advice_before(1000, 40)
    assert advice.text.startswith("batch_size=1000 is larger than the 40 training items: an epoch is one step of 40")


def test_loss_that_never_fell_warns_after_five_further_epochs() -> None:
    stuck = [2.302, 2.303, 2.300, 2.301, 2.302, 2.299]
    assert signs(epochs(stuck[:5])) == set()
    grown = text(epochs([2.60, 2.56, 4.13]))
    assert grown.startswith("the loss grows: 4.13 in epoch 3, 2.56 in epoch 2; a smaller learning_rate")
    assert text(epochs(stuck)).startswith("the loss does not fall: 2.299 at best in epochs 2 to 6, 2.302 in epoch 1")
    assert signs(epochs([2.3, *[2.2] * 20])) == set(), "it has come to rest after it fell"
    resumed = [replace(facts, epoch=facts.epoch + 10) for facts in epochs(stuck)]
    assert signs(resumed) == set(), "nobody here knows how it began"


def test_weights_that_stay_without_gradient_warn_by_name() -> None:
    assert signs(changed(epochs(), 1, without_gradient=("a",))) == set(), "the last batch may not have needed it"
    missing = changed(epochs(), 2, without_gradient=("a", "b", "c", "d"))
    assert text(missing).startswith("weights without a gradient: a, b, c and 1 more;")


def test_gradient_of_zero_warns_unless_nothing_is_left_to_learn() -> None:
    assert text(changed(epochs(), 1, gradient_norm=0.0)).startswith("the gradient is zero in epoch 8")
    assert signs(changed(epochs(), 1, gradient_norm=0.0, train_loss=0.0, validation_loss=0.0)) == set()


@pytest.mark.parametrize("norm", [1001.0, math.inf, math.nan])
def test_exploding_gradient_warns(norm: float) -> None:
    assert text(changed(epochs(), 1, gradient_norm=norm)).startswith(f"the gradient explodes: norm {norm:.4g} in epoch")


def test_large_gradient_is_no_explosion() -> None:
    assert signs(changed(epochs(), 1, gradient_norm=999.0)) == set()
    overflow = changed(epochs(), 1, gradient_norm=math.inf, overflows_are_usual=True)
    assert signs(overflow) == set(), "fp16 skips the step"
    early = [
        replace(facts, gradient_norm=norm) for facts, norm in zip(epochs(), [50.0, *[1e-3] * 6, 20.0], strict=True)
    ]
    assert signs(early) == set(), "it was larger before"


def test_validation_that_falls_behind_training_warns() -> None:
    train = [2.0, 1.0, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05]
    apart = [2.0, 1.2, 1.0, 1.3, 1.4, 1.5, 1.6, 1.7]
    assert signs(epochs(train[:7], apart[:7])) == set(), "four epochs above the lowest loss are not enough"
    assert text(epochs(train, apart)).startswith(
        "validation falls behind training: loss 1.7 against 0.05 in epoch 8, and 1 at best, in epoch 3"
    )
    level = [2.0, 1.2, 1.0, 1.1, 1.15, 1.1, 1.15, 1.1]
    assert signs(epochs(train, level)) == set(), "a loss that stays where it was is no fall"
    solved = [2.0, 0.1, 0.02, 0.05, 0.06, 0.06, 0.07, 0.07]
    assert signs(epochs([2.0, 0.1, 0.02, 0.01, 0.01, 0.01, 0.01, 0.01], solved)) == set(), "both are tiny"


def test_warning_is_logged_and_kept_once(
    few_digits: ImageData, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    task = tiny_task(tmp_path, {"kind": "unused_weight"}, epochs=3)
    result = load_trainer("image_classification").fit(task, few_digits, Ranks.alone("cpu"), Script())
    warnings = result.facts["warnings"]
    assert isinstance(warnings, list)
    assert [str(warning).partition(";")[0] for warning in warnings] == ["weights without a gradient: 0.unused"]
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == warnings


def test_batch_that_is_larger_than_the_data_is_told_and_its_rate_is_that_of_the_data(
    few_digits: ImageData, tmp_path: Path
) -> None:
    task = tiny_task(
        tmp_path, batch_size=1000, learning_rate_scaling="linear", reference_batch_size=101, warmup_fraction=0.0
    )
    script = Script()
    result = load_trainer("image_classification").fit(task, few_digits, Ranks.alone("cpu"), script)
    warnings = result.facts["warnings"]
    assert isinstance(warnings, list) and len(warnings) == 1
    assert str(warnings[0]).startswith("batch_size=1000 is larger than the 101 training items")
    assert script.reports[0].metrics["learning_rate"] == pytest.approx(0.01)
