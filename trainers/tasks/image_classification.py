"""Trains networks that say which class an image shows.

Importing this module loads no torch: whoever plans a search reads names and checks data only.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, ClassVar

from trainers.classifier import Classifier
from trainers.config import TrainConfig
from trainers.data.spec import DataSpec
from trainers.supervised import HYPERPARAMETERS

if TYPE_CHECKING:
    import torch

    from trainers.data.arrays import ImageData
    from trainers.problem import Problem

__all__ = ["ImageClassification"]


class ImageClassification(Classifier):
    """Learns the classes of images."""

    hyperparameters: ClassVar[frozenset[str]] = HYPERPARAMETERS
    data_words: ClassVar[str] = "a data set of images"
    data_options: ClassVar[Collection[str]] = ("image_size",)

    def check(self, data: DataSpec) -> None:
        """Refuse images that cannot be there, without reading them."""
        from trainers.data.sources import check_image_source

        check_image_source(data)

    def count_classes(self, data: DataSpec) -> int:
        """Count the classes, without reading an image."""
        from trainers.data.sources import count_image_classes

        return count_image_classes(data)

    def load(self, data: DataSpec) -> "ImageData":
        """Read and cut the images once, as arrays that ranks and trials can share."""
        from trainers.data.sources import load_images

        return load_images(data)

    def problem(self, data: "ImageData", training: TrainConfig, device: "torch.device") -> "Problem":
        """Return the images as a training problem on a device."""
        from trainers.image_problem import ImageProblem

        return ImageProblem(data, training, device)
