"""What all problems of telling classes apart have in common."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from trainers.errors import UserCodeError
from trainers.losses import Loss
from trainers.metrics.classification import ClassificationMeter
from trainers.metrics.names import MOST_CONFUSED_CLASSES
from trainers.networks import form_of, items_in_words
from trainers.problem import Batch, Meter, Problem
from trainers.reporting import JsonValue

__all__ = ["ClassificationProblem", "check_logits", "facts_of_classes"]


class ClassificationProblem(Problem):
    """Which class does an item belong to? Subclasses say what items are, and choose the loss of logits."""

    _loss: Loss
    _device: torch.device

    def losses(self, answers: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the loss of each item."""
        return self._loss(answers, targets)

    def meter(self) -> Meter:
        """Return an empty meter."""
        return ClassificationMeter(self.num_outputs, self._device)

    def check_answers(self, answers: object, batch: Batch) -> None:
        """Refuse answers that are not one logit for each class."""
        check_logits(answers, batch, self.num_outputs)


def check_logits(answers: object, batch: Batch, num_classes: int) -> None:
    """Refuse what a network has answered to a batch, if it is no tensor of one logit per class and item.

    Raises:
        UserCodeError: it is something else.
    """
    shape, needed = form_of(answers), (len(batch), num_classes)
    if shape != needed:
        raise UserCodeError(
            f"the network answers {items_in_words(len(batch))} of shape "
            f"{' and '.join(str(tuple(part.shape[1:])) for part in batch.inputs)} with {shape}; needed: logits of "
            f"shape {needed}"
        )


def facts_of_classes(labels_N: npt.NDArray[np.int64], class_names: Sequence[str]) -> dict[str, JsonValue]:
    """Return what is worth knowing of the validation split beside a result.

    Args:
        labels_N: classes of its items.
        class_names: in the order of the labels.

    Returns:
        `majority_share`: accuracy of always answering the most frequent class; `class_names`, in the order of a
        confusion matrix, where one is kept.
    """
    facts: dict[str, JsonValue] = {"majority_share": float(np.bincount(labels_N).max() / len(labels_N))}
    if len(class_names) <= MOST_CONFUSED_CLASSES:
        facts["class_names"] = list(class_names)
    return facts
