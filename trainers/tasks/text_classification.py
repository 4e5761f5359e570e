"""Trains networks that say which class a text belongs to.

Importing this module loads no torch: whoever plans a search reads names and checks data only.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, ClassVar

from trainers.classifier import Classifier
from trainers.config import TrainConfig
from trainers.data.spec import DataSpec
from trainers.method_choice import OF_IMAGES
from trainers.supervised import HYPERPARAMETERS

if TYPE_CHECKING:
    import torch

    from trainers.data.texts import TextData
    from trainers.problem import Problem

__all__ = ["TextClassification"]


class TextClassification(Classifier):
    """Learns the classes of texts; what a text is cut into is learned from the training texts, too."""

    hyperparameters: ClassVar[frozenset[str]] = HYPERPARAMETERS - OF_IMAGES | {"augmentation"}
    data_words: ClassVar[str] = "a data set of texts"
    data_options: ClassVar[Collection[str]] = (
        "target", "text", "tokens", "vocabulary", "max_length", "ignore", "drop_missing_target",
    )  # fmt: skip

    def check(self, data: DataSpec) -> None:
        """Refuse texts that cannot be there, without reading them."""
        from trainers.data.texts_sources import check_text_source

        check_text_source(data)

    def count_classes(self, data: DataSpec) -> int:
        """Count the classes, reading no more than the columns that must be."""
        from trainers.data.texts_sources import count_text_classes

        return count_text_classes(data)

    def load(self, data: DataSpec) -> "TextData":
        """Read, cut and number the texts once, as arrays that ranks and trials can share."""
        from trainers.data.texts import load_texts

        return load_texts(data)

    def problem(self, data: "TextData", training: TrainConfig, device: "torch.device") -> "Problem":
        """Return the texts as a training problem on a device."""
        from trainers.text_problem import TextProblem

        return TextProblem(data, training, device)
