"""Trains networks that tell a number of each row of a table, however few different ones its target column has."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from trainers.config import Direction
from trainers.metrics.names import NUMBER_METRICS
from trainers.tasks.tabular import Tabular

if TYPE_CHECKING:
    from trainers.data.table_targets import TargetKind

__all__ = ["TabularRegression"]


class TabularRegression(Tabular):
    """Learns numbers of rows; a target column of texts is refused."""

    metrics: ClassVar[Mapping[str, Direction]] = NUMBER_METRICS
    kind: "ClassVar[TargetKind | None]" = "numbers"
