"""Image classification as a training problem: pixels on the device, random changes, cross entropy, metrics."""

from collections.abc import Iterator, Mapping, Sequence

import torch

from trainers.classification import ClassificationProblem, facts_of_classes
from trainers.config import TrainConfig
from trainers.data.arrays import ImageData
from trainers.data.image_changes import draw_image_changes
from trainers.data.spec import SplitName
from trainers.images import DeviceImages
from trainers.losses import build_loss
from trainers.problem import Batch, Items
from trainers.reporting import JsonValue

__all__ = ["ImageProblem"]


class ImageProblem(ClassificationProblem):
    """Which class does an image show?

    Args:
        data: the images.
        training: which loss, and how images are changed.
        device: where they are put.
    """

    has_images = True

    def __init__(self, data: ImageData, training: TrainConfig, device: torch.device) -> None:
        self.input_shape = data.input_shape
        self.num_outputs = data.num_classes
        self.fingerprint = data.fingerprint
        self.training_items = len(data.train)
        self._data, self._training, self._device = data, training, device
        self._train = DeviceImages(data.train, data, device)
        self._loss = build_loss(training, data.train.labels_N, data.num_classes, device)

    def example(self) -> Batch:
        """Return the first training image."""
        return self._train.take(slice(0, 1))

    def training_batches(
        self, epoch: int, order: torch.Tensor, positions: Sequence[torch.Tensor | slice]
    ) -> Iterator[Batch]:
        """Yield changed and normalised images."""
        changes = draw_image_changes(self._training, epoch, self.training_items, self._data.mean, self._device)
        for places in positions:
            yield self._train.take(order[places], [change[places] for change in changes])

    def items(self, split: SplitName) -> Items:
        """Return a split to measure on; the training images are unchanged in it."""
        return DeviceImages(self._data.split(split), self._data, self._device)

    def blueprint(self) -> Mapping[str, JsonValue]:
        """Return what turns images into inputs, and logits into classes."""
        data = self._data
        return {
            "input_shape": list(data.input_shape),
            "class_names": list(data.class_names),
            "mean": list(data.mean),
            "std": list(data.std),
        }

    def facts(self) -> Mapping[str, JsonValue]:
        """Return the numbers of items, and the share of the largest class."""
        validation = self._data.validation
        return {
            "training_items": len(self._data.train),
            "validation_items": len(validation),
            **facts_of_classes(validation.labels_N, self._data.class_names),
        }
