"""Tables in memory: numbers, categories and targets per split, in arrays that processes can share; no torch."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from search_spaces.shapes import TableShape
from trainers.data.spec import SplitName
from trainers.data.splits import present_split
from trainers.data.table_columns import CategoryColumn, Column
from trainers.data.table_targets import TargetKind

__all__ = ["TableData", "TableSplit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSplit:
    """The rows of one split, in the order of the source.

    Attributes:
        numbers_ND: (N, D) float32, standardised; may be read-only, as all of these.
        categories_NC: (N, C) int64, 0 for missing and unknown ones.
        targets_N: (N,) int64 classes, or float64 numbers in their own units.
    """

    numbers_ND: npt.NDArray[np.float32]
    categories_NC: npt.NDArray[np.int64]
    targets_N: npt.NDArray[Any]

    def __len__(self) -> int:
        return len(self.targets_N)

    @property
    def labels_N(self) -> npt.NDArray[np.int64]:
        """The targets, where they are classes."""
        return self.targets_N

    def at(self, indices: npt.NDArray[np.int64]) -> "TableSplit":
        """Return a copy of some rows."""
        return TableSplit(
            numbers_ND=self.numbers_ND[indices],
            categories_NC=self.categories_NC[indices],
            targets_N=self.targets_N[indices],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableData:
    """A data set that is ready to train on; picklable, and shared by trials and ranks.

    Attributes:
        source: where it came from, for messages.
        train: what a network learns from.
        validation: what chooses the best trial.
        test: what only a finished search sees; None when the specification leaves it out.
        target: name of the column that is told.
        kind: what it holds.
        class_names: name of each class, in the order of the labels; empty for numbers.
        target_mean: mean of the numbers of the training split; 0 for classes.
        target_scale: their standard deviation; 1 for classes and for equal numbers.
        columns: what the other columns are to a network.
        notes: what was decided about odd columns and rows, one sentence each.
        dropped_rows: rows that were left out because their target is missing.
        fingerprint: SHA-256 over all splits; equal on two machines only if their data and splits are.
    """

    source: str
    train: TableSplit
    validation: TableSplit
    test: TableSplit | None
    target: str
    kind: TargetKind
    class_names: tuple[str, ...]
    target_mean: float
    target_scale: float
    columns: tuple[Column, ...]
    notes: tuple[str, ...]
    dropped_rows: int
    fingerprint: str

    @property
    def input_shape(self) -> TableShape:
        """Inputs that are numbers, and the categories of each other column."""
        categories = [column for column in self.columns if isinstance(column, CategoryColumn)]
        return TableShape(
            numbers=self.train.numbers_ND.shape[1], categories=tuple(len(column.values) + 1 for column in categories)
        )

    @property
    def num_outputs(self) -> int:
        """Number of logits that a network answers with; 1 for a number."""
        return len(self.class_names) or 1

    def split(self, name: SplitName) -> TableSplit:
        """Return one split.

        Raises:
            BadDataError: there is no test split.
        """
        split = {"train": self.train, "validation": self.validation, "test": self.test}[name]
        return present_split(split, name, self.source, "set test_fraction above 0, or a test_source")
