"""Short ways to train in tests: a task, a reporter that remembers, and comparisons of what came out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from search_spaces.configuration import JsonScalar
from trainers.checkpoint import Checkpoint, read_checkpoint
from trainers.config import EvaluateTask, TrainConfig, TrainTask
from trainers.data.arrays import ImageData, ImageSplit
from trainers.distributed import Ranks
from trainers.monitoring import CLOCK_METRICS
from trainers.reporting import Decision, Report, TrialResult
from trainers.tasks import load_trainer

__all__ = [
    "PLAIN",
    "SMOOTH",
    "Script",
    "assert_same_course",
    "assert_same_tensors",
    "evaluation_of",
    "fit",
    "last_checkpoint",
    "timeless",
    "tiny_task",
    "two_classes",
]

PLAIN: Mapping[str, JsonScalar] = {"width": 4, "norm": "batch", "dropout": 0.0, "kind": "sound"}
SMOOTH: Mapping[str, Any] = {"optimizer": "sgd", "learning_rate": 0.1}
"""A training in which a small difference of the weights stays small."""


class Script:
    """A reporter that remembers all reports and answers what it was told to; otherwise CONTINUE."""

    def __init__(self, decisions: dict[int, Decision] | None = None) -> None:
        self.reports: list[Report] = []
        self._decisions = decisions or {}

    def __call__(self, report: Report) -> Decision:
        self.reports.append(report)
        return self._decisions.get(report.epoch, Decision.CONTINUE)


def tiny_task(
    root: Path | str,
    network: Mapping[str, JsonScalar] | None = None,
    *,
    resume_from: str | None = None,
    **training: Any,
) -> TrainTask:
    settings = {"epochs": 2, "batch_size": 32, "learning_rate": 0.01, "seed": 7, **training}
    return TrainTask(
        space="tests.trainers.tiny_space",
        configuration={**PLAIN, **(network or {})},
        training=TrainConfig(**settings),
        artifacts_root=str(root),
        checkpoint_dir="trial-0",
        resume_from=resume_from,
    )


def fit(
    ranks: Ranks, task: TrainTask, data: ImageData, decisions: dict[int, Decision] | None = None
) -> tuple[TrialResult, list[Report]]:
    """Train on images as one of some ranks; return also what was reported."""
    script = Script(decisions)
    return load_trainer("image_classification").fit(task, data, ranks, script), script.reports


def evaluation_of(task: TrainTask) -> EvaluateTask:
    """Measure the checkpoint of a task's last epoch on the validation split."""
    return EvaluateTask(
        space=task.space,
        configuration=task.configuration,
        artifacts_root=task.artifacts_root,
        checkpoint=f"{task.checkpoint_dir}/epoch-{task.training.epochs:04d}.pt",
        split="validation",
    )


def last_checkpoint(root: Path) -> Checkpoint:
    return read_checkpoint(sorted((root / "trial-0").glob("epoch-*.pt"))[-1])


def timeless(report: Report) -> dict[str, float]:
    """Return what must be equal in two equal trainings: all but the clock's part."""
    return {name: value for name, value in report.metrics.items() if name not in CLOCK_METRICS}


def assert_same_course(
    ours: Sequence[Report], theirs: Sequence[Report], tolerance: float, names: Sequence[str] = ("train_loss", "loss")
) -> None:
    """Compare what the epochs of two trainings have measured."""
    for one, other in zip(ours, theirs, strict=True):
        assert {name: one.metrics[name] for name in names} == pytest.approx(
            {name: other.metrics[name] for name in names}, abs=tolerance
        )


def assert_same_tensors(left: Any, right: Any, tolerance: float = 0.0) -> None:
    """Compare nested states; tolerance 0: equal bits."""
    assert type(left) is type(right)
    if isinstance(left, torch.Tensor):
        assert left.dtype == right.dtype
        torch.testing.assert_close(left, right, rtol=0.0, atol=tolerance, equal_nan=False)
    elif isinstance(left, dict):
        assert left.keys() == right.keys()
        for key in left:
            assert_same_tensors(left[key], right[key], tolerance)
    elif isinstance(left, list | tuple):
        assert len(left) == len(right)
        for ours, theirs in zip(left, right, strict=True):
            assert_same_tensors(ours, theirs, tolerance)
    else:
        assert left == right


def two_classes(train: list[int], validation: list[int]) -> ImageData:
    """Return black images with these labels."""
    return ImageData(
        source="black",
        train=_black(train),
        validation=_black(validation),
        test=None,
        class_names=("0", "1"),
        mean=(0.0,),
        std=(1.0,),
        fingerprint="black",
    )


def _black(labels: list[int]) -> ImageSplit:
    images_NCHW = np.zeros((len(labels), 1, 4, 4), dtype=np.uint8)
    return ImageSplit(images_NCHW=images_NCHW, labels_N=np.array(labels, dtype=np.int64))
