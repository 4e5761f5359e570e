"""Trains networks that tell a number of each row of a table, however few different ones its target column has."""

from collections.abc import Mapping
from typing import ClassVar

from trainers.config import Direction
from trainers.loss_choice import OF_CLASSES, TargetKind
from trainers.method_choice import OF_TEACHERS
from trainers.metrics.names import NUMBER_METRICS
from trainers.tasks.tabular import Tabular

__all__ = ["TabularRegression"]


class TabularRegression(Tabular):
    """Learns numbers of rows; a target column of texts is refused."""

    hyperparameters: ClassVar[frozenset[str]] = Tabular.hyperparameters - OF_CLASSES - {*OF_TEACHERS}
    metrics: ClassVar[Mapping[str, Direction]] = NUMBER_METRICS
    kind: ClassVar[TargetKind | None] = "numbers"
