"""What is trained: a network, made-up data of a usual size, and the same data as plain tensors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.overhead.by_hand import Batches
from search_spaces.configuration import JsonScalar
from trainers.config import TrainConfig, TrainTask
from trainers.data.arrays import ImageData, ImageSplit
from trainers.supervised import Supervised
from trainers.tasks import load_trainer

__all__ = ["WORKLOADS", "Workload"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A training that both sides do alike."""

    space: str
    configuration: Mapping[str, JsonScalar]
    trainer: Supervised
    data: object
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
            training=TrainConfig(
                epochs=epochs, batch_size=self.batch_size, learning_rate=self.learning_rate, gradient_clip=1.0
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


WORKLOADS: Mapping[str, Callable[[], Workload]] = {"convnet": _convnet}
