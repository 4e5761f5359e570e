"""Each choice of how to train, in one table: it trains, and a resumed training equals an uninterrupted one.

A new choice of a TrainConfig field needs a row in `ROWS`, a new field a row or a place in `ELSEWHERE`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
import torch

from search_spaces.configuration import JsonScalar
from tests.trainers.number_problem import NumberProblem
from tests.trainers.rank_pool import RankPool
from tests.trainers.training import Script, assert_same_tensors, last_checkpoint, tiny_task
from trainers.config import OptimizerName, Parallelism, TrainConfig, TrainTask
from trainers.data.arrays import ImageData
from trainers.distributed import Ranks
from trainers.fitting import fit as fit_problem
from trainers.image_problem import ImageProblem
from trainers.loss_choice import CLASS_LOSSES, NUMBER_LOSSES
from trainers.reporting import Decision, TrialResult

ALONE = Ranks.alone("cpu")
ONE_STEP = 101
"""A batch of all training items: an epoch is one step."""

ROWS: tuple[Mapping[str, Any], ...] = (
    {"optimizer": "sgd", "momentum": 0.5},
    {"optimizer": "adam"},
    {"optimizer": "adamw", "weight_decay": 0.1},
    {"optimizer": "rmsprop"},
    {"optimizer": "lion"},
    {"optimizer": "muon"},
    {"optimizer": "lion", "precision": "fp16"},
    {"optimizer": "muon", "precision": "fp16"},
    {"schedule": "constant"},
    {"schedule": "step", "schedule_drops": 1, "schedule_factor": 0.1},
    {"schedule": "cosine"},
    {"schedule": "one_cycle", "warmup_fraction": 0.5},
    {"schedule": "linear", "warmup_fraction": 0.5},
    {"schedule": "polynomial", "schedule_power": 3.0},
    {"learning_rate_scaling": "none"},
    {"learning_rate_scaling": "linear", "reference_batch_size": 50},
    {"learning_rate_scaling": "sqrt", "reference_batch_size": 50},
    {"loss": "auto"},
    {"loss": "cross_entropy", "label_smoothing": 0.1},
    {"loss": "focal", "focal_gamma": 1.0},
    {"loss": "binary"},
    {"loss": "mse"},
    {"loss": "smooth_l1"},
    {"loss": "huber"},
    {"class_weights": "none"},
    {"class_weights": "balanced"},
    {"precision": "auto"},
    {"precision": "fp32"},
    {"precision": "tf32"},
    {"precision": "bf16"},
    {"precision": "fp16"},
    {"memory_format": "auto"},
    {"memory_format": "contiguous"},
    {"memory_format": "channels_last"},
    {"gradient_clip": 0.01},
    {"accumulate": 3, "learning_rate": 0.02},
    {"augmentation": 0.5},
    {"rand_augment": 0.5},
    {"random_erasing": 1.0},
    {"mixup": 0.4},
    {"cutmix": 1.0},
    {"ema": 0.5},
    {"l1": 0.01},
)

ALIKE: tuple[Mapping[str, Any], ...] = (
    {"precision": "fp32"},
    {"precision": "tf32"},
    {"memory_format": "contiguous"},
    {"memory_format": "channels_last"},
)
"""Choices that need not change what a CPU computes, besides the default ones."""

ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(("epochs", "batch_size", "seed"), "in every row"),
    **dict.fromkeys(("metric", "direction", "patience", "min_change"), "what the loop makes of reports"),
    **dict.fromkeys(("parallel", "gradient_compression", "batch_norm"), "needs several ranks"),
    **dict.fromkeys(("teacher", "temperature", "distillation"), "needs a teacher"),
    "compile": "takes long",
    "loader_workers": "needs data that do not lie in memory",
}
"""Fields that are tested in other modules, and why."""


def named(row: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in row.items())


def fit(ranks: Ranks, task: TrainTask, data: ImageData, pauses: bool = False) -> TrialResult:
    kind = ImageProblem if task.training.loss in CLASS_LOSSES else NumberProblem
    script = Script({1: Decision.PAUSE} if pauses else {})
    return fit_problem(task, lambda device: kind(data, task.training, device), ranks, script)


def task_of(root: Path, resume_from: str | None = None, norm: str = "batch", **choice: Any) -> TrainTask:
    network: dict[str, JsonScalar] = {"norm": norm, "dropout": 0.3 if norm == "batch" else 0.0}
    settings = {"batch_size": ONE_STEP, "epochs": 2, "metric": "loss", "direction": "minimize", **choice}
    return tiny_task(root, network, resume_from=resume_from, **settings)


@pytest.fixture(scope="module")
def plain_weights(few_digits: ImageData, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, torch.Tensor]:
    """The weights that come out when nothing is chosen."""
    root = tmp_path_factory.mktemp("plain")
    fit(ALONE, task_of(root), few_digits)
    return last_checkpoint(root).network


@pytest.mark.parametrize("choice", ROWS, ids=named)
def test_two_steps_move_the_weights_and_resumed_equals_uninterrupted(
    few_digits: ImageData, plain_weights: Mapping[str, torch.Tensor], tmp_path: Path, choice: Mapping[str, Any]
) -> None:
    assert fit(ALONE, task_of(tmp_path / "whole", **choice), few_digits).outcome == "completed"
    assert fit(ALONE, task_of(tmp_path / "parts", **choice), few_digits, pauses=True).outcome == "paused"
    halfway = last_checkpoint(tmp_path / "parts").network
    torch.manual_seed(12345)  # the second part runs in another process, whose generators stand elsewhere
    fit(ALONE, task_of(tmp_path / "parts", "trial-0/epoch-0001.pt", **choice), few_digits)

    whole, parts = last_checkpoint(tmp_path / "whole"), last_checkpoint(tmp_path / "parts")
    assert_same_tensors(dict(whole.network), dict(parts.network))
    assert_same_tensors(dict(whole.optimization), dict(parts.optimization))
    assert all(torch.isfinite(tensor).all() for tensor in whole.network.values())
    assert any(not torch.equal(halfway[name], tensor) for name, tensor in whole.network.items() if "weight" in name)
    is_default = all(TrainConfig.model_fields[name].default == value for name, value in choice.items())
    if not is_default and choice not in ALIKE:
        assert any(not torch.equal(plain_weights[name], tensor) for name, tensor in whole.network.items())


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
@pytest.mark.parametrize("name", get_args(OptimizerName))
def test_two_ranks_that_paused_equal_one_that_did_not(
    pair: RankPool, few_digits: ImageData, tmp_path: Path, name: OptimizerName, parallel: Parallelism
) -> None:
    choice: dict[str, Any] = {"norm": "none", "optimizer": name, "parallel": parallel}
    fit(ALONE, task_of(tmp_path / "1", **choice), few_digits)
    for pauses, resumed in ((True, None), (False, "trial-0/epoch-0001.pt")):
        for result in pair.run(fit, task_of(tmp_path / "2", resumed, **choice), few_digits, pauses):
            assert isinstance(result, TrialResult), result
            assert result.facts["parallel"] == parallel
    one, two = last_checkpoint(tmp_path / "1"), last_checkpoint(tmp_path / "2")
    assert_same_tensors(dict(one.network), dict(two.network), tolerance=1e-5)


@pytest.mark.parametrize("name", sorted(set(TrainConfig.model_fields) - set(ELSEWHERE)))
def test_every_field_and_every_choice_of_it_has_a_row(name: str) -> None:
    annotation = TrainConfig.model_fields[name].annotation
    chosen = {row[name] for row in ROWS if name in row}
    assert chosen, f"no row of ROWS sets {name}"
    if get_origin(annotation) is Literal:
        assert chosen == set(get_args(annotation))


def test_losses_of_both_kinds_of_targets_are_in_the_table() -> None:
    assert {row["loss"] for row in ROWS if "loss" in row} == set(CLASS_LOSSES) | set(NUMBER_LOSSES)
    assert set(ELSEWHERE) <= set(TrainConfig.model_fields)
