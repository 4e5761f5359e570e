"""What a classifier's answers on a split are worth; each item counts once, on however many ranks."""

import torch

from trainers.distributed import Ranks
from trainers.losses.cross_entropy import cross_entropy

__all__ = ["ClassificationMeter", "classification_metrics"]


class ClassificationMeter:
    """Adds up the answers of one rank; `total` adds the ranks.

    Each rank brings its own items, as many as it has (none at all is fine): only sums are exchanged, in one collective.
    """

    def __init__(self, num_classes: int, device: torch.device) -> None:
        self._num_classes = num_classes
        # Counts are whole numbers far below 2**53, so float64 holds them exactly beside the sum of the
        # losses.
        self._sums = torch.zeros(num_classes * num_classes + 1, dtype=torch.float64, device=device)

    def add(self, logits_NK: torch.Tensor, labels_N: torch.Tensor) -> None:
        """Count the answers to N items; nothing leaves the device."""
        cells = self._num_classes * self._num_classes
        answers_N = logits_NK.argmax(dim=1)
        self._sums[:cells] += torch.bincount(labels_N * self._num_classes + answers_N, minlength=cells)
        self._sums[cells] += cross_entropy(logits_NK, labels_N).sum()

    def total(self, ranks: Ranks) -> dict[str, float]:
        """Return the metrics of all ranks' items together; a collective, called by every rank.

        Raises:
            ValueError: no rank counted an item.
        """
        sums = ranks.sum_(self._sums.clone()).cpu()
        confusion_KK = sums[:-1].reshape(self._num_classes, self._num_classes)
        return classification_metrics(confusion_KK, float(sums[-1]))


def classification_metrics(confusion_KK: torch.Tensor, loss_sum: float) -> dict[str, float]:
    """Turn a confusion matrix (row: true class, column: answer) and a summed loss into metrics.

    Returns:
        `accuracy`; `balanced_accuracy`: mean recall of the classes that occur; `f1_macro`: mean F1 of the
        classes that occur or were answered, 0 for one that was never right; `loss`: mean cross entropy per
        item, in nats.

    Raises:
        ValueError: the matrix is empty.
    """
    confusion_KK = confusion_KK.to(torch.float64)
    items = float(confusion_KK.sum())
    if items == 0.0:
        raise ValueError("metrics need at least one item")
    right_K, true_K, answered_K = confusion_KK.diagonal(), confusion_KK.sum(dim=1), confusion_KK.sum(dim=0)
    occurs_K = true_K > 0
    used_K = occurs_K | (answered_K > 0)
    return {
        "accuracy": float(right_K.sum()) / items,
        "balanced_accuracy": float((right_K[occurs_K] / true_K[occurs_K]).mean()),
        "f1_macro": float((2.0 * right_K[used_K] / (true_K + answered_K)[used_K]).mean()),
        "loss": loss_sum / items,
    }
