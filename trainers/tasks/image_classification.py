"""Trains networks that say which class an image shows.

Importing this module loads no torch: whoever plans a search reads names and checks data only.
"""

import difflib
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from search_spaces.configuration import JsonScalar
from trainers.config import Direction, EvaluateTask, TrainTask
from trainers.data.spec import DataSpec
from trainers.errors import UserCodeError
from trainers.reporting import Reporter, TrialResult
from trainers.trainer import Trainer

if TYPE_CHECKING:
    from trainers.data.arrays import ImageData
    from trainers.distributed import Ranks

__all__ = ["ImageClassification"]


class ImageClassification(Trainer):
    """Cross entropy over the classes of images; DDP, mixed precision, augmentation, exact resumption.

    A report holds the metrics below, measured on the validation split, and `train_loss`, `learning_rate`,
    `epoch_s` and `items_per_s`.
    """

    hyperparameters: ClassVar[frozenset[str]] = frozenset(
        {
            "accumulate",
            "augmentation",
            "batch_size",
            "gradient_clip",
            "label_smoothing",
            "learning_rate",
            "optimizer",
            "warmup_fraction",
            "weight_decay",
        }
    )
    metrics: ClassVar[Mapping[str, Direction]] = MappingProxyType(
        {"accuracy": "maximize", "balanced_accuracy": "maximize", "f1_macro": "maximize", "loss": "minimize"}
    )

    has_networks: ClassVar[bool] = True

    def check(self, data: DataSpec) -> None:
        """Refuse images that cannot be there, without reading them."""
        from trainers.data.sources import check_image_source

        check_image_source(data)

    def load(self, data: DataSpec) -> "ImageData":
        """Read and cut the images once, as arrays that ranks and trials can share."""
        from trainers.data.sources import load_images

        return load_images(data)

    def fingerprint(self, data: "ImageData") -> str:
        """Return the digest of all images, labels and splits."""
        return data.fingerprint

    def fit(self, task: TrainTask, data: "ImageData", ranks: "Ranks", reporter: Reporter) -> TrialResult:
        """Train one configuration.

        Raises:
            UserCodeError: the objective is no metric of this trainer, or the network's answers have a wrong shape.
            NonFiniteLossError: the loss or the objective left the numbers.
            DeviceMemoryError: the device's memory is too small.
            DamagedCheckpointError: `resume_from` cannot be gone on with.
            RanksDivergedError: the ranks no longer hold equal weights.
            PeerFailedError: another rank failed.
        """
        from trainers.image_fitting import fit_images

        self._check_metric(task.training.metric)
        return fit_images(task, data, ranks, reporter)

    def evaluate(self, task: EvaluateTask, data: "ImageData", ranks: "Ranks") -> Mapping[str, float]:
        """Measure the weights of a checkpoint on one split.

        Raises:
            BadDataError: the data have no such split.
            DamagedCheckpointError: the checkpoint cannot be read or belongs to another network.
        """
        from trainers.image_fitting import evaluate_images

        return evaluate_images(task, data, ranks)

    def count_weights(self, space: str, configuration: Mapping[str, JsonScalar], data: "ImageData") -> int:
        """Count the weights of the network that a configuration builds for these images.

        Raises:
            InfeasibleArchitectureError: the configuration describes nothing that can be trained.
        """
        from trainers.image_networks import count_weights

        return count_weights(space, configuration, data)

    def _check_metric(self, name: str) -> None:
        if name in self.metrics:
            return
        near = difflib.get_close_matches(name, self.metrics, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UserCodeError(f"no metric {name!r}; {hint}measured: {', '.join(sorted(self.metrics))}")
