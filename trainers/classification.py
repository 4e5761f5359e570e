"""What all problems of telling classes apart have in common."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from trainers.errors import UserCodeError
from trainers.losses import Loss
from trainers.metrics.classification import ClassificationMeter
from trainers.metrics.names import MOST_CONFUSED_CLASSES
from trainers.problem import Meter, Problem
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

    def check_network(self, network: nn.Module) -> None:
        """Refuse a network that does not answer one logit for each class."""
        check_logits(network, self.example().inputs, self.num_outputs)


def check_logits(network: nn.Module, inputs: tuple[torch.Tensor, ...], num_classes: int) -> None:
    """Try a network with one item.

    Raises:
        UserCodeError: the answer is no tensor of one logit per class.
    """
    network.eval()
    with torch.no_grad():
        logits = network(*inputs)
    shape = tuple(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
    if shape != (1, num_classes):
        raise UserCodeError(
            f"the network answers one item of shape {' and '.join(str(tuple(part.shape[1:])) for part in inputs)} "
            f"with {shape}; needed: logits of shape {(1, num_classes)}"
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
