"""Trains networks that tell a column of a table from its other columns: a class or a number, as the column says.

Importing this module loads no torch: whoever plans a search reads names and checks data only.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from trainers.config import Direction, TrainConfig
from trainers.data.spec import DataSpec
from trainers.loss_choice import TargetKind
from trainers.method_choice import OF_IMAGES
from trainers.metrics.defined import check_class_metric, check_number_metric
from trainers.metrics.names import CLASS_METRICS, NUMBER_METRICS, class_metrics
from trainers.supervised import HYPERPARAMETERS, Supervised

if TYPE_CHECKING:
    import torch

    from trainers.data.tables import TableData
    from trainers.problem import Problem

__all__ = ["Tabular"]


class Tabular(Supervised):
    """Learns to tell a column of a table: classes where it holds texts, truth values or few whole numbers.

    `tabular_classification` and `tabular_regression` say themselves what the column is.
    """

    hyperparameters: ClassVar[frozenset[str]] = HYPERPARAMETERS - OF_IMAGES
    data_words: ClassVar[str] = "a table"
    data_options: ClassVar[Collection[str]] = ("target", "ignore", "drop_missing_target")
    metrics: ClassVar[Mapping[str, Direction]] = MappingProxyType({**CLASS_METRICS, **NUMBER_METRICS})
    kind: ClassVar[TargetKind | None] = None
    """What the target is; None: what its column says."""

    def check(self, data: DataSpec) -> None:
        """Refuse tables that cannot be there, and columns that they lack, from their names alone."""
        from trainers.data.table_sources import check_table_source

        check_table_source(data)

    def target_kind(self, data: DataSpec) -> TargetKind:
        """Return what the target is; its column is read for that, unless the trainer says it."""
        from trainers.data.table_sources import count_target_classes

        return self.kind or ("numbers" if count_target_classes(data, None) is None else "classes")

    def measured(self, data: DataSpec) -> Mapping[str, Direction]:
        """Return the metrics that the target has; its column is read for that."""
        from trainers.data.table_sources import count_target_classes

        classes = count_target_classes(data, self.kind)
        return NUMBER_METRICS if classes is None else class_metrics(classes)

    def measured_on(self, data: "TableData") -> Mapping[str, Direction]:
        """Return the metrics of loaded data."""
        return NUMBER_METRICS if data.kind == "numbers" else class_metrics(len(data.class_names))

    def check_objective(self, metric: str, data: "TableData") -> None:
        """Refuse a metric that has no value on a split: too few classes, or equal numbers."""
        splits = {"validation": data.validation} | ({} if data.test is None else {"test": data.test})
        targets = {name: split.targets_N for name, split in splits.items()}
        if data.kind == "classes":
            check_class_metric(metric, targets, data.class_names, data.source)
        else:
            check_number_metric(metric, targets, data.source)

    def load(self, data: DataSpec) -> "TableData":
        """Read and cut the table once, as arrays that ranks and trials can share."""
        from trainers.data.table_loading import load_table

        return load_table(data, self.kind)

    def problem(self, data: "TableData", training: TrainConfig, device: "torch.device") -> "Problem":
        """Return the rows as a training problem on a device."""
        from trainers.table_problem import TableProblem

        return TableProblem(data, training, device)
