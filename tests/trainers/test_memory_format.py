"""The order of numbers in memory changes how fast they are, and nothing else."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.trainers.training import Script, assert_same_tensors, last_checkpoint, tiny_task
from trainers.config import MemoryFormat
from trainers.data.arrays import ImageData
from trainers.distributed import Ranks
from trainers.memory_format import UsedMemoryFormat, arrange, resolve_memory_format
from trainers.precision import UsedPrecision
from trainers.reporting import Decision
from trainers.tasks import load_trainer

trainer = load_trainer("image_classification")
ALONE = Ranks.alone("cpu")
NETWORK: dict[str, Any] = {"width": 8, "norm": "none"}


@pytest.mark.parametrize("first", ["contiguous", "channels_last"])
def test_training_and_its_checkpoint_do_not_depend_on_the_order(
    few_digits: ImageData, tmp_path: Path, first: MemoryFormat
) -> None:
    # The second half in the other order: weights and the optimizer's state must be put in it.
    second = "contiguous" if first == "channels_last" else "channels_last"
    settings: dict[str, Any] = {"optimizer": "adamw", "epochs": 2}
    whole = tiny_task(tmp_path / "whole", NETWORK, memory_format=first, **settings)
    result = trainer.fit(whole, few_digits, ALONE, Script())
    parts = tmp_path / "parts"
    trainer.fit(
        tiny_task(parts, NETWORK, memory_format=first, **settings), few_digits, ALONE, Script({1: Decision.PAUSE})
    )
    resumed = tiny_task(parts, NETWORK, memory_format=second, resume_from="trial-0/epoch-0001.pt", **settings)
    trainer.fit(resumed, few_digits, ALONE, Script())
    left, right = last_checkpoint(tmp_path / "whole"), last_checkpoint(parts)
    assert result.facts["memory_format"] == first
    assert_same_tensors(dict(left.network), dict(right.network), 1e-5)
    assert_same_tensors(left.optimization["optimizer"], right.optimization["optimizer"], 1e-5)


def test_arranged_network_sees_channels_last_images_and_answers_the_same() -> None:
    seen: list[bool] = []

    class Looking(nn.Conv2d):
        def forward(self, images_NCHW: torch.Tensor) -> torch.Tensor:
            seen.append(images_NCHW.is_contiguous(memory_format=torch.channels_last))
            return super().forward(images_NCHW)

    network = nn.Sequential(Looking(3, 4, 3))
    images_NCHW = torch.rand(2, 3, 8, 8)
    before = network(images_NCHW)
    arrange(network, "channels_last")
    torch.testing.assert_close(network(images_NCHW), before, rtol=0.0, atol=1e-5)
    assert seen == [False, True]
    assert network.state_dict()["0.weight"].is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    "requested, device, precision, has_images, used",
    [
        ("auto", "cpu", "fp32", True, "channels_last"),
        ("auto", "cuda", "fp32", True, "contiguous"),
        ("auto", "cuda", "bf16", True, "channels_last"),
        ("contiguous", "cuda", "bf16", True, "contiguous"),
        ("channels_last", "cpu", "fp32", False, "contiguous"),
    ],
)
def test_order_that_is_used(
    requested: MemoryFormat, device: str, precision: UsedPrecision, has_images: bool, used: UsedMemoryFormat
) -> None:
    assert resolve_memory_format(requested, torch.device(device), precision, has_images) == used
