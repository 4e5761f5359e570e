"""Batch normalisation over two real processes: what they compute together equals what one computes alone."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.trainers.rank_pool import RankPool
from tests.trainers.training import assert_same_course, assert_same_tensors, fit, last_checkpoint, tiny_task
from trainers.config import TrainConfig, TrainTask
from trainers.data.arrays import ImageData
from trainers.distributed import Ranks
from trainers.errors import UserCodeError
from trainers.parallel.batch_norm import SharedStatistics, batch_norm_layers, whose_statistics
from trainers.reporting import Decision

ALONE = Ranks.alone("cpu")
UNEVEN: Mapping[str, Any] = {"optimizer": "sgd", "learning_rate": 0.05, "batch_size": 33}
"""101 items make batches of 33, 33, 18 and 17."""


def norm_task(root: Path, kind: str = "both", resume_from: str | None = None, **training: Any) -> TrainTask:
    task = tiny_task(root, resume_from=resume_from, **{**UNEVEN, "batch_norm": "synchronised", **training})
    return task.model_copy(update={"space": "tests.trainers.parallel.norm_space", "configuration": {"kind": kind}})


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"batch_size": 30, "accumulate": 4, "augmentation": 1.0},
        {"kind": "images", "batch_size": 1, "learning_rate": 0.01, "epochs": 1},
        {"ema": 0.9, "precision": "bf16"},
    ],
    ids=["uneven", "accumulated", "a rank without items", "averaged bf16"],
)
def test_two_ranks_equal_one(
    pair: RankPool, few_digits: ImageData, tmp_path: Path, parallel: str, settings: dict[str, Any]
) -> None:
    tolerance = 5e-3 if "precision" in settings else 1e-5
    _, alone = fit(ALONE, norm_task(tmp_path / "1", **settings), few_digits)
    (result, reports), _ = pair.run(fit, norm_task(tmp_path / "2", parallel=parallel, **settings), few_digits)
    assert result.facts["parallel"] == parallel
    one, two = last_checkpoint(tmp_path / "1"), last_checkpoint(tmp_path / "2")
    assert_same_tensors(dict(one.network), dict(two.network), tolerance)
    assert_same_course(reports, alone, tolerance)


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_two_ranks_with_statistics_of_their_own_differ_from_one(
    pair: RankPool, few_digits: ImageData, tmp_path: Path, parallel: str
) -> None:
    _, alone = fit(ALONE, norm_task(tmp_path / "1"), few_digits)
    task = norm_task(tmp_path / "2", parallel=parallel, batch_norm="local")
    (result, reports), _ = pair.run(fit, task, few_digits)
    assert result.facts["batch_norm"] == "per rank, 17 of 33 items"
    assert abs(reports[-1].metrics["train_loss"] - alone[-1].metrics["train_loss"]) > 1e-3


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_resumed_on_two_ranks_equals_uninterrupted_and_on_one_rank_too(
    pair: RankPool, few_digits: ImageData, tmp_path: Path, parallel: str
) -> None:
    settings: dict[str, Any] = {"parallel": parallel, "epochs": 2}
    (result, _), _ = pair.run(fit, norm_task(tmp_path / "whole", **settings), few_digits)
    assert result.facts["batch_norm"] == "over all ranks, 33 of 33 items"
    for name in ("two", "one"):
        pair.run(fit, norm_task(tmp_path / name, **settings), few_digits, {1: Decision.PAUSE})
    resume = "trial-0/epoch-0001.pt"
    pair.run(fit, norm_task(tmp_path / "two", resume_from=resume, **settings), few_digits)
    (alone, _) = fit(ALONE, norm_task(tmp_path / "one", resume_from=resume, **settings), few_digits)
    assert "batch_norm" not in alone.facts
    whole, two, one = (last_checkpoint(tmp_path / name) for name in ("whole", "two", "one"))
    assert_same_tensors(dict(whole.network), dict(two.network))
    assert_same_tensors(dict(whole.optimization), dict(two.optimization))
    assert_same_tensors(dict(whole.network), dict(one.network), 1e-5)


LAYERS: Mapping[str, tuple[nn.Module, tuple[int, ...]]] = {
    "1d": (nn.BatchNorm1d(3), ()),
    "1d with length": (nn.BatchNorm1d(3, momentum=None), (2,)),
    "2d": (nn.BatchNorm2d(3, momentum=0.3), (2, 3)),
    "3d": (nn.BatchNorm3d(3, affine=False), (2, 1, 2)),
    "without running statistics": (nn.BatchNorm1d(3, track_running_stats=False), ()),
}


def through(layer: nn.Module, inputs: torch.Tensor, weight: float = 1.0) -> dict[str, torch.Tensor]:
    """Send items forward and back, and return what came of it and where the layer stands."""
    inputs = inputs.clone().requires_grad_()
    answers = layer(inputs)
    (answers.pow(3).sum() * weight).backward()
    gradients = {name: part.grad for name, part in layer.named_parameters() if part.grad is not None}
    assert inputs.grad is not None
    return {"answers": answers.detach(), "inputs": inputs.grad, **gradients, **dict(layer.named_buffers())}


def items_of(dimensions: tuple[int, ...]) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(7, 3, *dimensions, generator=generator, dtype=torch.float64) + 3.0


def shared_layer(ranks: Ranks, name: str, first: int) -> dict[str, torch.Tensor]:
    """Two passes with `first` items on rank 0 and the others on rank 1."""
    layer, dimensions = copy.deepcopy(LAYERS[name][0]).double(), LAYERS[name][1]
    statistics = SharedStatistics(batch_norm_layers(layer), ranks.main)
    statistics.begin()
    own = items_of(dimensions)[slice(None, first) if ranks.is_first else slice(first, None)]
    for _ in range(2):
        if len(own):
            result = through(layer, own)
        else:
            with statistics.without_items(layer):
                result = through(layer, items_of(dimensions)[:1], weight=0.0)
    statistics.end()
    assert "forward" not in vars(layer) and layer.training
    return result


@pytest.mark.parametrize("first", [4, 1, 0])
@pytest.mark.parametrize("name", LAYERS)
def test_layer_on_two_ranks_equals_the_layer_with_all_items(pair: RankPool, name: str, first: int) -> None:
    layer, dimensions = copy.deepcopy(LAYERS[name][0]).double(), LAYERS[name][1]
    for _ in range(2):
        whole = through(layer, items_of(dimensions))
    one, two = pair.run(shared_layer, name, first)
    if first == 0:
        assert torch.count_nonzero(one["inputs"]) == 0
        one = {**one, "answers": one["answers"][:0], "inputs": one["inputs"][:0]}
    for key in ("answers", "inputs"):
        assert_same_tensors(torch.cat([one[key], two[key]]), whole[key], 1e-10)
    for key in {"weight", "bias"} & whole.keys():
        assert_same_tensors(one[key] + two[key], whole[key], 1e-9)
    for key, buffer in layer.named_buffers():
        assert torch.equal(one[key], two[key])
        assert_same_tensors(one[key], buffer, 1e-10)


def cancelling_items(kind: torch.dtype, mean: float) -> torch.Tensor:
    """Items of a small spread: the gradients of their answers are large, and nearly all of them cancels."""
    generator = torch.Generator().manual_seed(2)
    return (mean + 0.02 * torch.randn(7, 4, generator=generator)).to(kind)


def cancelling_gradients(inputs: torch.Tensor, layer: nn.Module, kind: torch.dtype, first: int = 0) -> torch.Tensor:
    """Return the inputs' gradients where those of the answers, of `kind`, have the mean 4800 and the spread 16."""
    generator = torch.Generator().manual_seed(3)
    gradients = (16.0 * (300.0 + torch.randn(7, 4, generator=generator))).to(kind)
    inputs = inputs.clone().requires_grad_()
    layer(inputs).backward(gradients[first : first + len(inputs)].to(inputs.dtype))
    assert inputs.grad is not None
    return inputs.grad


def shared_cancelling_gradients(ranks: Ranks, kind: torch.dtype, mean: float) -> torch.Tensor:
    layer, first = nn.BatchNorm1d(4), 0 if ranks.is_first else 4
    statistics = SharedStatistics(batch_norm_layers(layer), ranks.main)
    statistics.begin()
    own = cancelling_items(kind, mean)[slice(None, 4) if ranks.is_first else slice(4, None)]
    return cancelling_gradients(own, layer, kind, first)


@pytest.mark.parametrize(
    "kind, mean", [(torch.float16, 0.0), (torch.bfloat16, 0.0), (torch.float32, 0.0), (torch.float32, 100.0)]
)
def test_gradients_that_nearly_cancel_keep_the_digits_of_their_format(
    pair: RankPool, kind: torch.dtype, mean: float
) -> None:
    items = cancelling_items(kind, mean)
    exact = cancelling_gradients(items.double(), nn.BatchNorm1d(4).double(), kind)
    torchs = cancelling_gradients(items, nn.BatchNorm1d(4), kind)
    ours = torch.cat(pair.run(shared_cancelling_gradients, kind, mean))
    assert ours.dtype == kind
    assert (ours.double() - exact).norm() <= 1.5 * (torchs.double() - exact).norm()


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
@pytest.mark.parametrize("settings", [{"batch_size": 33}, {"batch_size": 7, "learning_rate": 0.5}])
def test_two_ranks_skip_the_steps_in_fp16_that_one_skips(
    pair: RankPool, few_digits: ImageData, tmp_path: Path, parallel: str, settings: dict[str, Any]
) -> None:
    settings = {"precision": "fp16", "epochs": 1, **settings}
    alone, _ = fit(ALONE, norm_task(tmp_path / "1", **settings), few_digits)
    (result, _), _ = pair.run(fit, norm_task(tmp_path / "2", parallel=parallel, **settings), few_digits)
    assert result.facts["skipped_steps"] == alone.facts["skipped_steps"]


def test_network_with_nothing_to_synchronise_is_told_on_several_ranks_alone(
    pair: RankPool, few_digits: ImageData, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"batch_norm": "synchronised", "batch_size": 64, "epochs": 1}
    without = {"norm": "none"}
    (result, _), _ = pair.run(fit, tiny_task(tmp_path / "2", without, **settings), few_digits)
    assert result.facts["warnings"] == [
        "batch_norm=synchronised has no effect: the network has no layer of batch normalisation; leave it at local"
    ]
    assert "batch_norm" not in result.facts
    (result, _), _ = pair.run(fit, tiny_task(tmp_path / "3", **settings), few_digits)
    assert "warnings" not in result.facts
    result, _ = fit(ALONE, tiny_task(tmp_path / "1", without, **settings), few_digits)
    assert "warnings" not in result.facts


def lone_value(ranks: Ranks) -> None:
    layer = nn.BatchNorm1d(3)
    statistics = SharedStatistics(batch_norm_layers(layer), ranks.main)
    statistics.begin()
    if ranks.is_first:
        layer(torch.ones(1, 3))
    else:
        with statistics.without_items(layer):
            layer(torch.ones(1, 3))


def test_one_value_in_all_has_no_spread_and_is_refused_on_both_ranks(pair: RankPool) -> None:
    errors = pair.run(lone_value)
    assert [type(error) for error in errors] == [ValueError] * 2
    assert all("needs more than 1 value per channel to train, got 1 over all ranks" in str(error) for error in errors)


@pytest.mark.parametrize(
    "kind, parallel, words",
    [
        ("both", "pipeline", "with parallel=pipeline each layer is on one rank"),
        ("own", "ddp", "have a `forward` of their own: 0.1 (OwnNorm); use batch_norm=local"),
    ],
)
def test_what_cannot_be_synchronised_is_refused_on_both_ranks(
    pair: RankPool, few_digits: ImageData, tmp_path: Path, kind: str, parallel: str, words: str
) -> None:
    errors = pair.run(fit, norm_task(tmp_path, kind, parallel=parallel), few_digits)
    assert [type(error) for error in errors] == [UserCodeError] * 2
    assert all(words in str(error) for error in errors)


@pytest.mark.parametrize(
    "settings, ranks, words",
    [
        ({}, 1, None),
        ({}, 2, "per rank, 32 of 64 items"),
        ({"accumulate": 4}, 1, "per micro-batch, 16 of 64 items"),
        ({"accumulate": 4}, 2, "per rank, 8 of 64 items"),
        ({"parallel": "pipeline"}, 2, "per micro-batch, 32 of 64 items"),
        ({"parallel": "pipeline"}, 1, None),
        ({"batch_norm": "synchronised"}, 2, "over all ranks, 64 of 64 items"),
        ({"batch_norm": "synchronised", "accumulate": 4}, 3, "over all ranks, 16 of 64 items"),
    ],
)
def test_record_tells_whose_statistics_are_used(settings: dict[str, Any], ranks: int, words: str | None) -> None:
    training = TrainConfig(batch_size=64, **settings)
    assert whose_statistics(nn.Sequential(nn.BatchNorm1d(2)), training, ranks, 64) == words
    assert whose_statistics(nn.Sequential(nn.LayerNorm(2)), training, ranks, 64) is None
