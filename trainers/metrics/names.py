"""What is measured, and which way is better: a function of the kind of target alone. Loads no torch."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from trainers.config import Direction

__all__ = [
    "CLASS_METRICS",
    "MOST_CONFUSED_CLASSES",
    "MOST_RANKED_CLASSES",
    "NUMBER_METRICS",
    "RANKED",
    "TOP",
    "class_metrics",
]

TOP: Final = 5
"""`top5_accuracy` is told where there are more classes than this."""
MOST_RANKED_CLASSES: Final = 100
"""Metrics that rank all items by each class's score cost a sort per class; with more classes they are not offered."""
MOST_CONFUSED_CLASSES: Final = 50
"""The confusion matrix and the F1 of each class are kept for at most so many classes."""

RANKED: Final = ("auc", "average_precision")
"""The metrics that rank items."""

CLASS_METRICS: Final[Mapping[str, Direction]] = MappingProxyType(
    {
        "accuracy": "maximize",
        "balanced_accuracy": "maximize",
        "f1_macro": "maximize",
        "f1_micro": "maximize",
        "top5_accuracy": "maximize",
        "auc": "maximize",
        "average_precision": "maximize",
        "log_loss": "minimize",
        "loss": "minimize",
    }
)
"""All metrics of telling classes apart, the usual objective first; `class_metrics` says which of them make sense."""

NUMBER_METRICS: Final[Mapping[str, Direction]] = MappingProxyType(
    {"r2": "maximize", "rmse": "minimize", "mae": "minimize", "loss": "minimize"}
)
"""All metrics of telling numbers, the usual objective first."""


def class_metrics(num_classes: int) -> Mapping[str, Direction]:
    """Return the metrics of telling so many classes apart, the usual objective first."""
    left_out: set[str] = set()
    if num_classes <= TOP:
        left_out.add("top5_accuracy")
    if num_classes > MOST_RANKED_CLASSES:
        left_out.update(RANKED)
    return {name: direction for name, direction in CLASS_METRICS.items() if name not in left_out}
