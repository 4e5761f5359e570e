"""Two real processes with gloo, each with some of the layers: together they train as one process does."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from search_spaces.catalog import nas_small
from search_spaces.configuration import JsonScalar
from tests.trainers.rank_pool import RankPool
from tests.trainers.training import (
    Script,
    assert_same_course,
    assert_same_tensors,
    evaluation_of,
    fit,
    last_checkpoint,
    timeless,
    tiny_task,
)
from trainers.config import TrainTask
from trainers.data.arrays import ImageData
from trainers.distributed import Ranks
from trainers.errors import UserCodeError
from trainers.launching import run_on_ranks
from trainers.parallel.pipeline import runs_of_equal_parts
from trainers.precision import MixedPrecision
from trainers.reporting import Decision, Reporter, TrialResult
from trainers.tasks import load_trainer

trainer = load_trainer("image_classification")
ALONE = Ranks.alone("cpu")
CHAIN: dict[str, JsonScalar] = {"norm": "none", "dropout": 0.0, "kind": "sound"}


def chain_task(root: Path, network: dict[str, JsonScalar] | None = None, **training: Any) -> TrainTask:
    task = tiny_task(root, **{"optimizer": "sgd", "learning_rate": 0.05, "parallel": "pipeline", **training})
    return task.model_copy(
        update={"space": "tests.trainers.parallel.chain_space", "configuration": {**CHAIN, **(network or {})}}
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"batch_size": 32},
        {"batch_size": 30, "accumulate": 4, "augmentation": 1.0},
        {"batch_size": 1, "epochs": 1},
        {"optimizer": "muon"},
        {"optimizer": "adamw", "gradient_clip": 0.0},
        {"precision": "bf16"},
        {"precision": "fp16", "gradient_clip": 0.0},
    ],
    ids=["plain", "uneven parts", "one item", "muon", "adamw", "bf16", "fp16"],
)
def test_two_stages_equal_one_rank(
    pair: RankPool, few_digits: ImageData, tmp_path: Path, settings: dict[str, Any]
) -> None:
    tolerance = 1e-3 if settings.get("precision") in ("fp16", "bf16") else 1e-5
    _, alone = fit(ALONE, chain_task(tmp_path / "1", **settings), few_digits)

    (result, reports), (_, none) = pair.run(fit, chain_task(tmp_path / "2", **settings), few_digits)

    assert (result.outcome, result.facts["parallel"], none) == ("completed", "pipeline", [])
    one, two = last_checkpoint(tmp_path / "1"), last_checkpoint(tmp_path / "2")
    assert_same_tensors(dict(one.network), dict(two.network), tolerance)
    assert one.optimization["optimizer"]["state"].keys() == two.optimization["optimizer"]["state"].keys()
    assert_same_course(reports, alone, tolerance, names=("train_loss", "loss", "accuracy"))


def test_batch_normalisation_sees_the_same_as_on_one_rank_that_accumulates(
    pair: RankPool, few_digits: ImageData, tmp_path: Path
) -> None:
    # Batches of 51 and 50 items, in parts of 26, 25 and 25, 25.
    assert nas_small.SPACE.defaults is not None
    cells = {**nas_small.SPACE.defaults, "channels": 8, "dropout": 0.0}
    update = {"space": "nas_small", "configuration": cells}
    settings: dict[str, Any] = {"batch_size": 51, "epochs": 1, "learning_rate": 0.01}
    fit(ALONE, chain_task(tmp_path / "1", accumulate=2, **settings).model_copy(update=update), few_digits)
    pair.run(fit, chain_task(tmp_path / "2", **settings).model_copy(update=update), few_digits)
    one, two = last_checkpoint(tmp_path / "1"), last_checkpoint(tmp_path / "2")
    assert_same_tensors(dict(one.network), dict(two.network), 1e-5)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_resumed_stages_equal_uninterrupted_ones_to_the_last_bit(
    pair: RankPool, few_digits: ImageData, tmp_path: Path, precision: str
) -> None:
    network: dict[str, JsonScalar] = {"dropout": 0.5, "norm": "batch"}
    settings: dict[str, Any] = {"optimizer": "adamw", "epochs": 3, "precision": precision, "ema": 0.9}
    (_, whole), _ = pair.run(fit, chain_task(tmp_path / "whole", network, **settings), few_digits)
    parts = chain_task(tmp_path / "parts", network, **settings)
    (_, first), _ = pair.run(fit, parts, few_digits, {1: Decision.PAUSE})
    resumed = parts.model_copy(update={"resume_from": "trial-0/epoch-0001.pt"})
    (_, second), _ = pair.run(fit, resumed, few_digits)
    assert [timeless(report) for report in first + second] == [timeless(report) for report in whole]
    left, right = last_checkpoint(tmp_path / "whole"), last_checkpoint(tmp_path / "parts")
    assert_same_tensors(dict(left.network), dict(right.network))
    assert_same_tensors(dict(left.optimization), dict(right.optimization))


def test_checkpoint_of_stages_is_measured_and_gone_on_with_by_one_rank(
    pair: RankPool, few_digits: ImageData, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"optimizer": "muon", "epochs": 2}
    task = chain_task(tmp_path / "mixed", **settings)
    (_, reports), _ = pair.run(fit, task, few_digits, {1: Decision.PAUSE})
    measured = trainer.evaluate(evaluation_of(chain_task(tmp_path / "mixed", epochs=1)), few_digits, ALONE)
    for name, value in measured.items():
        assert reports[0].metrics[name] == pytest.approx(value, abs=1e-6)
    fit(ALONE, task.model_copy(update={"resume_from": "trial-0/epoch-0001.pt"}), few_digits)
    fit(ALONE, chain_task(tmp_path / "alone", **settings), few_digits)
    mixed, alone = last_checkpoint(tmp_path / "mixed"), last_checkpoint(tmp_path / "alone")
    assert_same_tensors(dict(mixed.network), dict(alone.network), 1e-5)


def test_layers_without_gradient_may_come_first(pair: RankPool, few_digits: ImageData, tmp_path: Path) -> None:
    network: dict[str, JsonScalar] = {"kind": "frozen_start"}
    fit(ALONE, chain_task(tmp_path / "1", network), few_digits)
    pair.run(fit, chain_task(tmp_path / "2", network), few_digits)
    one, two = last_checkpoint(tmp_path / "1"), last_checkpoint(tmp_path / "2")
    assert_same_tensors(dict(one.network), dict(two.network), 1e-5)


def test_board_says_that_it_shows_the_first_stage_alone(pair: RankPool, few_digits: ImageData, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    task = chain_task(tmp_path, epochs=1).model_copy(update={"tensorboard": "board"})
    replies = pair.run(fit, task, few_digits)
    assert [result.outcome for result, _ in replies] == ["completed"] * 2
    (file,) = (tmp_path / "board").iterdir()
    assert b"Each rank has some of the layers (pipeline)" in file.read_bytes()


@pytest.mark.parametrize(
    "kind, words",
    [
        ("no_chain", "OwnWay may call its own in any way: make it an nn.Sequential"),
        ("shared_weight", "cannot put 5.shared on two ranks"),
        ("one_layer", "chain of 2 layers has weights in 1 of them"),
    ],
)
def test_network_that_cannot_be_cut_is_refused_on_both_ranks(
    pair: RankPool, few_digits: ImageData, tmp_path: Path, kind: str, words: str
) -> None:
    errors = pair.run(fit, chain_task(tmp_path, {"kind": kind}), few_digits)
    assert [type(error) for error in errors] == [UserCodeError] * 2
    assert all(words in str(error) for error in errors)


def steps_after_overflow(ranks: Ranks, overflowing: int) -> tuple[list[bool], list[float]]:
    """Make two steps; in the first the gradient of one rank is infinite."""
    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.AdamW([weight], fused=True)
    precision = MixedPrecision("fp16", ranks.device)
    precision.share(ranks)
    made = []
    for factor in (float("inf") if ranks.rank == overflowing else 1.0, 1.0):
        precision.scale((weight * factor).sum()).backward()  # type: ignore[no-untyped-call]  # torch
        made.append(precision.step(optimizer))
        optimizer.zero_grad()
    return made, weight.tolist()


@pytest.mark.parametrize("overflowing", [0, 1])
def test_overflow_on_one_stage_lets_all_skip_the_step(pair: RankPool, overflowing: int) -> None:
    (made, weight), other = pair.run(steps_after_overflow, overflowing)
    assert made == [False, True]
    assert other == (made, weight)


def fit_on(task: TrainTask, data: ImageData, ranks: Ranks, reporter: Reporter) -> TrialResult:
    return trainer.fit(task, data, ranks, reporter)


@pytest.mark.slow
def test_error_in_the_last_stage_ends_the_training_with_the_networks_own_words(
    few_digits: ImageData, tmp_path: Path
) -> None:
    work = partial(fit_on, chain_task(tmp_path, {"kind": "raises_at_the_end"}), few_digits)
    with pytest.raises(ValueError, match="this layer cannot be trained"):
        run_on_ranks(work, 2, Script(), device="cpu")


@pytest.mark.parametrize("items, most", [(32, 8), (19, 5), (17, 5), (1, 4), (101, 10), (7, 100)])
def test_runs_cover_a_batch_with_the_fewest_parts(items: int, most: int) -> None:
    runs = runs_of_equal_parts(slice(5, 5 + items), most)
    assert [runs[0].start, *(run.stop for run in runs)] == [*(run.start for run in runs), 5 + items]
    sizes = []
    for run in runs:
        length = run.stop - run.start
        count = -(-length // most)
        assert length % count == 0
        sizes += [length // count] * count
    assert len(runs) <= 2
    assert len(sizes) == -(-items // most)
    assert max(sizes) - min(sizes) <= 1


def test_long_splits_are_measured_in_runs_of_a_few_parts() -> None:
    runs = runs_of_equal_parts(slice(0, 100), most=10, longest=4)
    assert [run.stop - run.start for run in runs] == [40, 40, 20]
