"""Trains networks that tell a class of each row of a table, whatever its target column looks like."""

from collections.abc import Mapping
from typing import ClassVar

from trainers.config import Direction
from trainers.loss_choice import TargetKind
from trainers.metrics.names import CLASS_METRICS
from trainers.tasks.tabular import Tabular

__all__ = ["TabularClassification"]


class TabularClassification(Tabular):
    """Learns the classes of rows; numbers in the target column are names of classes."""

    metrics: ClassVar[Mapping[str, Direction]] = CLASS_METRICS
    kind: ClassVar[TargetKind | None] = "classes"
