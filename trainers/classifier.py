"""Trainers that tell classes apart: which metrics they measure, and on which data these have a value.

Importing this module loads no torch.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from trainers.config import Direction
from trainers.data.spec import DataSpec
from trainers.loss_choice import TargetKind
from trainers.metrics.defined import check_class_metric
from trainers.metrics.names import CLASS_METRICS, class_metrics
from trainers.supervised import Supervised

__all__ = ["Classifier"]


class Classifier(Supervised):
    """Tells classes apart.

    What `load` returns has `source`, `class_names`, and splits `train`, `validation` and `test` (or None) with
    `labels_N`.
    """

    metrics: ClassVar[Mapping[str, Direction]] = CLASS_METRICS

    @abstractmethod
    def count_classes(self, data: DataSpec) -> int:
        """Count the classes of some data, reading no more than must be.

        Raises:
            BadDataError: the data cannot be read.
        """

    def target_kind(self, data: DataSpec) -> TargetKind:
        """Return that they are classes."""
        return "classes"

    def measured(self, data: DataSpec) -> Mapping[str, Direction]:
        """Return the metrics that make sense for the data's number of classes."""
        return class_metrics(self.count_classes(data))

    def measured_on(self, data: Any) -> Mapping[str, Direction]:
        """Return the metrics of loaded data."""
        return class_metrics(len(data.class_names))

    def check_objective(self, metric: str, data: Any) -> None:
        """Refuse a metric that needs more classes than a split has."""
        splits = {"validation": data.validation} | ({} if data.test is None else {"test": data.test})
        labels = {name: split.labels_N for name, split in splits.items()}
        check_class_metric(metric, labels, data.class_names, data.source)
