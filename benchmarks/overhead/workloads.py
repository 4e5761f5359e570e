"""What is trained: a network, made-up data of a usual size, and the same data as plain tensors."""

import csv
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.overhead.by_hand import Batches
from search_spaces.configuration import JsonScalar
from trainers.config import TrainConfig, TrainTask
from trainers.data.arrays import ImageData, ImageSplit
from trainers.data.spec import DataSpec
from trainers.data.tables import TableData, TableSplit
from trainers.data.texts import TextData, TextSplit
from trainers.supervised import Supervised
from trainers.tasks import load_trainer

__all__ = ["WORKLOADS", "Workload"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A training that both sides do alike."""

    space: str
    configuration: Mapping[str, JsonScalar]
    trainer: Supervised
    data: Any
    items: int
    validation_items: int
    train_batches: Batches
    validation_batches: Batches
    batch_size: int = 64
    learning_rate: float = 1e-3

    def task(self, folder: str, epochs: int) -> TrainTask:
        """Return the task that trains it below a folder."""
        return TrainTask(
            space=self.space,
            configuration=self.configuration,
            # Our choice for convolutions on a CPU, channels_last, would make them faster than the other sides' are.
            training=TrainConfig(
                epochs=epochs,
                batch_size=self.batch_size,
                learning_rate=self.learning_rate,
                gradient_clip=1.0,
                memory_format="contiguous",
            ),
            artifacts_root=folder,
            checkpoint_dir="trial",
        )


def _convnet() -> Workload:
    """10,000 images of 28x28 pixels, 2,000 for validation."""
    generator = np.random.default_rng(0)
    train, validation = (_images(generator, items) for items in (10_000, 2_000))
    data = ImageData(
        source="noise", train=train, validation=validation, test=None, class_names=tuple("0123456789"), mean=(0.5,),
        std=(0.29,), fingerprint="noise",
    )  # fmt: skip
    return Workload(
        space="benchmarks.overhead.convnet",
        configuration={"width": 16},
        trainer=_trainer("image_classification"),
        data=data,
        items=len(train),
        validation_items=len(validation),
        train_batches=_normalised(train),
        validation_batches=_normalised(validation),
    )


def _images(generator: np.random.Generator, items: int) -> ImageSplit:
    return ImageSplit(
        images_NCHW=generator.integers(0, 256, (items, 1, 28, 28), dtype=np.uint8),
        labels_N=generator.integers(0, 10, items),
    )


def _normalised(split: ImageSplit) -> Batches:
    images_NCHW, labels_N = torch.from_numpy(split.images_NCHW), torch.from_numpy(split.labels_N)
    return lambda items: ((images_NCHW[items].float().div_(255.0).sub_(0.5).div_(0.29),), labels_N[items])


def _trainer(name: str) -> Supervised:
    trainer = load_trainer(name)
    assert isinstance(trainer, Supervised)
    return trainer


def _mlp() -> Workload:
    """A table of 20,000 rows with 20 numbers and five classes."""
    generator = np.random.default_rng(0)
    numbers_ND = generator.normal(size=(20_000, 20))
    classes_N = np.digitize(numbers_ND[:, :5].sum(axis=1) + generator.normal(size=20_000), [-2.0, -0.5, 0.5, 2.0])
    header = [f"n{column}" for column in range(20)]
    rows = [[*map("{:.5f}".format, row), f"c{label}"] for row, label in zip(numbers_ND, classes_N, strict=True)]
    trainer, data = _loaded("tabular_classification", [*header, "target"], rows)
    assert isinstance(data, TableData)
    return Workload(
        space="benchmarks.overhead.mlp",
        configuration={"width": 128},
        trainer=trainer,
        data=data,
        items=len(data.train),
        validation_items=len(data.validation),
        train_batches=_rows(data.train),
        validation_batches=_rows(data.validation),
    )


def _transformer() -> Workload:
    """8,000 texts of 24 words out of 2,000, in ten classes."""
    generator = np.random.default_rng(0)
    words_NL = generator.integers(0, 2_000, (8_000, 24))
    labels_N = generator.integers(0, 10, 8_000)
    rows = [
        [" ".join(f"w{word}" for word in words), f"c{label}"] for words, label in zip(words_NL, labels_N, strict=True)
    ]
    trainer, data = _loaded("text_classification", ["text", "target"], rows)
    assert isinstance(data, TextData)
    return Workload(
        space="benchmarks.overhead.transformer",
        configuration={"width": 64},
        trainer=trainer,
        data=data,
        items=len(data.train),
        validation_items=len(data.validation),
        train_batches=_tokens(data.train),
        validation_batches=_tokens(data.validation),
    )


def _loaded(task: str, header: list[str], rows: list[list[str]]) -> tuple[Supervised, object]:
    """Write a table and let the trainer read it, so that it is in the form that trainings get."""
    trainer = _trainer(task)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows])
        return trainer, trainer.load(DataSpec(source=str(path), target="target"))


def _rows(split: TableSplit) -> Batches:
    numbers_ND, labels_N = torch.from_numpy(split.numbers_ND), torch.from_numpy(split.targets_N)
    return lambda items: ((numbers_ND[items],), labels_N[items])


def _tokens(split: TextSplit) -> Batches:
    tokens_NL = torch.from_numpy(split.tokens_T.reshape(len(split), -1).astype(np.int64))
    labels_N = torch.from_numpy(split.labels_N)
    return lambda items: ((tokens_NL[items],), labels_N[items])


WORKLOADS: Mapping[str, Callable[[], Workload]] = {"convnet": _convnet, "mlp": _mlp, "transformer": _transformer}
