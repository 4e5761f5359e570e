"""What a classifier's answers on a split are worth; each item counts once, on however many ranks.

Shapes: N items, K classes.
"""

from collections.abc import Mapping

import torch

from trainers.distributed import Ranks
from trainers.losses.cross_entropy import cross_entropy
from trainers.metrics.gathering import gather_rows
from trainers.metrics.names import MOST_CONFUSED_CLASSES, MOST_RANKED_CLASSES, TOP
from trainers.metrics.ranking import ranked_metrics
from trainers.reporting import JsonValue

__all__ = ["ClassificationMeter", "counted_metrics", "f1_of_classes", "places_of_labels"]


class ClassificationMeter:
    """Adds up the answers of one rank; `total` adds the ranks.

    Each rank brings its own items, as many as it has (none at all is fine). Counts are summed on the device, in one
    collective; only metrics that rank items need the logits of all of them, and there are none beyond
    `MOST_RANKED_CLASSES`.
    """

    def __init__(self, num_classes: int, device: torch.device) -> None:
        self._num_classes = num_classes
        self._is_confusion_kept = num_classes <= MOST_CONFUSED_CLASSES
        cells = num_classes * num_classes if self._is_confusion_kept else 3 * num_classes
        # Counts are whole numbers far below 2**53, so float64 holds them exactly beside the sum of the losses.
        self._counts = torch.zeros(cells, dtype=torch.float64, device=device)
        self._sums = torch.zeros(2, dtype=torch.float64, device=device)  # of the losses, and hits among the first
        self._logits: list[torch.Tensor] = []
        self._labels: list[torch.Tensor] = []
        self._details: dict[str, JsonValue] = {}

    def add(self, logits_NK: torch.Tensor, labels_N: torch.Tensor) -> None:
        """Count the answers to N items; nothing leaves the device."""
        logits_NK = logits_NK.float()
        self._count(logits_NK.argmax(dim=1), labels_N)
        self._sums[0] += cross_entropy(logits_NK, labels_N).sum()
        if self._num_classes > TOP:
            self._sums[1] += (places_of_labels(logits_NK, labels_N) < TOP).sum()
        if self._num_classes <= MOST_RANKED_CLASSES:
            self._logits.append(logits_NK)
            self._labels.append(labels_N)

    def total(self, ranks: Ranks) -> dict[str, float]:
        """Return the metrics of all ranks' items together; a collective, called by every rank.

        Those that are not defined on these items (see `ranked_metrics`) are left out.

        Raises:
            ValueError: no rank counted an item.
        """
        cells = len(self._counts)
        sums = ranks.sum_(torch.cat([self._counts, self._sums])).cpu()
        right_K, true_K, answered_K = self._marginals(sums[:cells])
        metrics = counted_metrics(right_K, true_K, answered_K)
        items = float(true_K.sum())
        if self._num_classes > TOP:
            metrics["top5_accuracy"] = float(sums[cells + 1]) / items
        metrics["log_loss"] = metrics["loss"] = float(sums[cells]) / items
        self._details = {"balanced_accuracy": metrics["balanced_accuracy"]}
        self._details |= self._detailed(sums[:cells], f1_of_classes(right_K, true_K, answered_K))
        return metrics | self._ranked(ranks)

    def details(self) -> Mapping[str, JsonValue]:
        """Return what `total` has found and is worth knowing of the best epoch.

        `balanced_accuracy`; for at most `MOST_CONFUSED_CLASSES` classes also `f1_per_class` and `confusion`, whose rows
        are true classes and columns answers.
        """
        return self._details

    def _count(self, answers_N: torch.Tensor, labels_N: torch.Tensor) -> None:
        classes = self._num_classes
        if self._is_confusion_kept:
            self._counts += torch.bincount(labels_N * classes + answers_N, minlength=classes * classes)
            return
        right_N = (labels_N == answers_N).to(torch.float64)
        self._counts += torch.cat(
            [
                torch.bincount(labels_N, weights=right_N, minlength=classes),
                torch.bincount(labels_N, minlength=classes),
                torch.bincount(answers_N, minlength=classes),
            ]
        )

    def _marginals(self, counts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return for each class how often it was rightly answered, true, and answered."""
        if not self._is_confusion_kept:
            right_K, true_K, answered_K = counts.reshape(3, self._num_classes)
            return right_K, true_K, answered_K
        confusion_KK = counts.reshape(self._num_classes, self._num_classes)
        return confusion_KK.diagonal(), confusion_KK.sum(dim=1), confusion_KK.sum(dim=0)

    def _detailed(self, counts: torch.Tensor, f1_K: torch.Tensor) -> dict[str, JsonValue]:
        if not self._is_confusion_kept:
            return {}
        confusion_KK = counts.reshape(self._num_classes, self._num_classes)
        return {"confusion": confusion_KK.to(torch.int64).tolist(), "f1_per_class": f1_K.tolist()}

    def _ranked(self, ranks: Ranks) -> dict[str, float]:
        if self._num_classes > MOST_RANKED_CLASSES:
            return {}
        device = self._counts.device
        logits = [torch.zeros((0, self._num_classes), device=device), *self._logits]
        labels = [torch.zeros(0, dtype=torch.int64, device=device), *self._labels]
        return ranked_metrics(gather_rows(torch.cat(logits), ranks), gather_rows(torch.cat(labels), ranks))


def counted_metrics(right_K: torch.Tensor, true_K: torch.Tensor, answered_K: torch.Tensor) -> dict[str, float]:
    """Turn counts of the classes into metrics.

    Args:
        right_K: (K,) items of each class that were answered rightly.
        true_K: (K,) items of each class.
        answered_K: (K,) items that were answered with each class.

    Returns:
        `accuracy`; `balanced_accuracy`: mean recall of the classes that occur; `f1_macro`: mean F1 of the classes that
        occur or were answered, 0 for one that was never right; `f1_micro`: F1 over all decisions together, which for
        one answer per item is the accuracy.

    Raises:
        ValueError: nothing was counted.
    """
    items = float(true_K.sum())
    if items == 0.0:
        raise ValueError("metrics need at least one item")
    occurs_K = true_K > 0
    used_K = occurs_K | (answered_K > 0)
    accuracy = float(right_K.sum()) / items
    return {
        "accuracy": accuracy,
        "balanced_accuracy": float((right_K[occurs_K] / true_K[occurs_K]).mean()),
        "f1_macro": float(f1_of_classes(right_K, true_K, answered_K)[used_K].mean()),
        "f1_micro": accuracy,
    }


def f1_of_classes(right_K: torch.Tensor, true_K: torch.Tensor, answered_K: torch.Tensor) -> torch.Tensor:
    """Return (K,) the F1 of each class; 0 for one that neither occurs nor was answered."""
    return 2.0 * right_K / (true_K + answered_K).clamp(min=1.0)


def places_of_labels(logits_NK: torch.Tensor, labels_N: torch.Tensor) -> torch.Tensor:
    """Return (N,) how many classes come before an item's own, by their logits; of equal ones the first comes first."""
    own_N1 = logits_NK.gather(1, labels_N[:, None])
    is_earlier_NK = torch.arange(logits_NK.shape[1], device=logits_NK.device) < labels_N[:, None]
    return ((logits_NK > own_N1) | ((logits_NK == own_N1) & is_earlier_NK)).sum(dim=1)
