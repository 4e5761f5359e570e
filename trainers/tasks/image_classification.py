"""Trains networks that say which class an image shows.

Importing this module loads no torch: whoever plans a search reads names and checks data only.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from trainers.config import Direction, TrainConfig
from trainers.data.spec import DataSpec
from trainers.supervised import HYPERPARAMETERS, Supervised

if TYPE_CHECKING:
    import torch

    from trainers.data.arrays import ImageData
    from trainers.problem import Problem

__all__ = ["ImageClassification"]


class ImageClassification(Supervised):
    """Learns the classes of images."""

    hyperparameters: ClassVar[frozenset[str]] = HYPERPARAMETERS
    metrics: ClassVar[Mapping[str, Direction]] = MappingProxyType(
        {"accuracy": "maximize", "balanced_accuracy": "maximize", "f1_macro": "maximize", "loss": "minimize"}
    )

    def check(self, data: DataSpec) -> None:
        """Refuse images that cannot be there, without reading them."""
        from trainers.data.sources import check_image_source

        check_image_source(data)

    def load(self, data: DataSpec) -> "ImageData":
        """Read and cut the images once, as arrays that ranks and trials can share."""
        from trainers.data.sources import load_images

        return load_images(data)

    def problem(self, data: "ImageData", training: TrainConfig, device: "torch.device") -> "Problem":
        """Return the images as a training problem on a device."""
        from trainers.image_problem import ImageProblem

        return ImageProblem(data, training, device)
