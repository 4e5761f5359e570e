"""Which training methods fit which task; loads no torch, so that a plan can be refused before anything is trained."""

from collections.abc import Collection, Iterator
from pathlib import Path
from zipfile import is_zipfile

from trainers.artifact_files import is_url
from trainers.config import TrainConfig

__all__ = ["ITEM_CHANGES", "OF_IMAGES", "OF_TEACHERS", "method_mistakes", "missing_teacher"]

ITEM_CHANGES = ("augmentation", "rand_augment", "random_erasing", "mixup", "cutmix")
"""Training parameters that change or mix items; of texts `augmentation` alone."""
OF_IMAGES = frozenset({*ITEM_CHANGES, "memory_format"})
"""Training parameters that mean something for images."""
OF_TEACHERS = ("teacher", "temperature", "distillation")
"""Training parameters of distillation, the teacher first."""


def method_mistakes(training: TrainConfig, changes: Collection[str], *, tells_classes: bool) -> list[str]:
    """Return what is switched on and does not fit a task, one sentence each; empty: all fits.

    Args:
        training: what is switched on.
        changes: those of ITEM_CHANGES that mean something for the task's items; other names do not count.
        tells_classes: whether the targets are classes.
    """
    return list(_method_mistakes(training, changes, tells_classes))


def missing_teacher(training: TrainConfig) -> list[str]:
    """Return in a sentence that the teacher's file is not there, or no checkpoint; a URL is not asked for."""
    teacher = training.teacher
    if teacher is None or is_url(teacher) or is_zipfile(teacher):
        return []
    problem = "this file is no checkpoint of ours" if Path(teacher).is_file() else "there is no such file"
    return [f"teacher={teacher!r}: {problem}; give the checkpoint of a training of the same data"]


def _method_mistakes(training: TrainConfig, changes: Collection[str], tells_classes: bool) -> Iterator[str]:
    foreign = [name for name in ITEM_CHANGES if name not in changes]
    on = [f"{name}={getattr(training, name)}" for name in foreign if getattr(training, name) > 0.0]
    if on:
        yield f"{' and '.join(on)}: only images are changed or mixed, and this task has none; leave it at 0"
    if training.teacher is not None and not tells_classes:
        yield f"teacher={training.teacher!r}: a teacher's answers are shares of classes, and this task tells no classes"
    idle = [name for name in OF_TEACHERS if getattr(training, name) != TrainConfig.model_fields[name].default]
    if training.teacher is None and idle:
        given = " and ".join(f"{name}={getattr(training, name)}" for name in idle)
        yield f"{given}: there is no teacher to learn from; give teacher=CHECKPOINT, or leave it out"
