"""What must hold for every training, whatever it learns."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from tests.helpers.stores import store_url
from tests.trainers.training import (
    Script,
    assert_same_tensors,
    evaluation_of,
    last_checkpoint,
    timeless,
    tiny_task,
    two_classes,
)
from trainers.checkpoint import read_checkpoint
from trainers.data.arrays import ImageData
from trainers.distributed import Ranks
from trainers.reporting import Decision
from trainers.tasks import load_trainer

__all__ = ["store_url"]

trainer = load_trainer("image_classification")
ALONE = Ranks.alone("cpu")


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
def test_resumed_training_equals_uninterrupted_one_to_the_last_bit(
    few_digits: ImageData, tmp_path: Path, optimizer: str, precision: str
) -> None:
    network = {"dropout": 0.5}
    settings: dict[str, Any] = {
        "optimizer": optimizer,
        "precision": precision,
        "augmentation": 0.5,
        "epochs": 3,
        "patience": 5,
    }
    whole, first, second = Script(), Script({1: Decision.PAUSE}), Script()

    trainer.fit(tiny_task(tmp_path / "whole", network, **settings), few_digits, ALONE, whole)
    paused = trainer.fit(tiny_task(tmp_path / "parts", network, **settings), few_digits, ALONE, first)
    torch.manual_seed(12345)  # the second part runs in another process, whose generators stand elsewhere
    resumed = trainer.fit(
        tiny_task(tmp_path / "parts", network, resume_from="trial-0/epoch-0001.pt", **settings),
        few_digits,
        ALONE,
        second,
    )

    assert (paused.outcome, paused.epoch, resumed.outcome, resumed.epoch) == ("paused", 1, "completed", 3)
    parts = first.reports + second.reports
    assert [timeless(report) for report in parts] == [timeless(report) for report in whole.reports]
    left, right = last_checkpoint(tmp_path / "whole"), last_checkpoint(tmp_path / "parts")
    assert_same_tensors(dict(left.network), dict(right.network))
    assert_same_tensors(dict(left.optimization), dict(right.optimization))
    assert left.best == right.best


def test_training_resumed_from_a_store_equals_the_one_in_a_folder(
    few_digits: ImageData, tmp_path: Path, store_url: str
) -> None:
    for root in (str(tmp_path), store_url):
        trainer.fit(tiny_task(root, epochs=2), few_digits, ALONE, Script({1: Decision.PAUSE}))
        resumed = tiny_task(root, epochs=2, resume_from="trial-0/epoch-0001.pt")
        assert trainer.fit(resumed, few_digits, ALONE, Script()).outcome == "completed"
    folder, store = (read_checkpoint(f"{root}/trial-0/epoch-0002.pt") for root in (tmp_path, store_url))
    assert_same_tensors(dict(folder.network), dict(store.network))
    assert_same_tensors(dict(folder.optimization), dict(store.optimization))
    scores = [trainer.evaluate(evaluation_of(tiny_task(root)), few_digits, ALONE) for root in (tmp_path, store_url)]
    assert scores[0] == scores[1]


def test_same_seed_is_same_run_and_another_seed_is_another(few_digits: ImageData, tmp_path: Path) -> None:
    runs = []
    for index, seed in enumerate([3, 3, 4]):
        script = Script()
        task = tiny_task(tmp_path / str(index), {"dropout": 0.3}, seed=seed, augmentation=1.0)
        trainer.fit(task, few_digits, ALONE, script)
        runs.append([timeless(report) for report in script.reports])
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("batch_size", [32, 13])
@pytest.mark.parametrize("accumulate", [2, 5])
def test_accumulation_equals_big_batch(few_digits: ImageData, tmp_path: Path, accumulate: int, batch_size: int) -> None:
    settings: dict[str, Any] = {"optimizer": "sgd", "learning_rate": 0.1, "label_smoothing": 0.1}
    losses = []
    for parts in (1, accumulate):
        script = Script()
        task = tiny_task(tmp_path / str(parts), {"norm": "none"}, accumulate=parts, batch_size=batch_size, **settings)
        trainer.fit(task, few_digits, ALONE, script)
        losses.append([report.metrics["train_loss"] for report in script.reports])
    whole, cut = (last_checkpoint(tmp_path / str(parts)) for parts in (1, accumulate))
    assert_same_tensors(dict(whole.network), dict(cut.network), tolerance=1e-5)
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)


def test_partial_accumulation_window_has_the_gradient_of_a_mean(tmp_path: Path) -> None:
    # Ten micro-batches of two items, four per step; the gradient of every item is 1.
    data = two_classes(train=[0] * 20, validation=[0])
    gradients: list[float] = []
    hook = register_optimizer_step_pre_hook(
        lambda optimizer, *_: gradients.append(float(optimizer.param_groups[0]["params"][0].grad))
    )
    try:
        task = tiny_task(
            tmp_path,
            {"kind": "unit_gradient"},
            epochs=1,
            batch_size=8,
            accumulate=4,
            gradient_clip=0.0,
            learning_rate=1e-12,
        )
        result = trainer.fit(task, data, ALONE, Script())
    finally:
        hook.remove()
    assert result.facts["micro_batch"] == 2
    assert gradients == pytest.approx([1.0, 1.0, 1.0], abs=1e-6)


def test_global_generators_are_left_as_they_were(few_digits: ImageData, tmp_path: Path) -> None:
    torch.manual_seed(99)
    torch_before, numpy_before = torch.get_rng_state(), repr(np.random.get_state())
    trainer.fit(tiny_task(tmp_path, {"dropout": 0.5}, augmentation=1.0), few_digits, ALONE, Script())
    assert torch.equal(torch_before, torch.get_rng_state())
    assert repr(np.random.get_state()) == numpy_before
