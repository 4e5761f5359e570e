"""Tables in memory: numbers, categories and targets per split, in arrays that processes can share; no torch."""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from search_spaces.shapes import TableShape
from trainers.data.spec import DataSpec, SplitName
from trainers.data.splits import stratified_split
from trainers.data.table_columns import CategoryColumn, Column, encode_rows, learn_column
from trainers.data.table_files import RawTable
from trainers.data.table_sources import read_source, target_column
from trainers.data.table_targets import TargetKind, Targets, read_targets
from trainers.errors import BadDataError

__all__ = ["TableData", "TableSplit", "load_table"]

_log = logging.getLogger(__name__)


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
        if split is None:
            raise BadDataError(f"{self.source!r} has no {name} split; set test_fraction above 0, or a test_source")
        return split


def load_table(spec: DataSpec, wanted: TargetKind | None = None) -> TableData:
    """Read a source and its test source, cut them into splits, and turn cells into numbers by the training split.

    Args:
        spec: says which and how.
        wanted: what the target shall be; None: what its column says.

    Raises:
        BadDataError: a source is missing or broken, the target is missing in rows or has one value, or no column
            says anything.
    """
    table = read_source(spec.source)
    name = target_column(table.columns, spec)
    targets = read_targets(name, table.columns[name], table.separator, wanted)
    table, targets, dropped = _complete_rows(table, targets, spec)
    _refuse_one_value(targets, spec)
    indices = _parts(targets, spec)
    features = {
        column: cells for column, cells in table.columns.items() if column != name and column not in spec.ignore
    }
    columns, notes = _learn_columns(features, table.separator, indices["train"])
    if not columns:
        raise BadDataError(f"{spec.source}: no column says anything about {name!r}: {'; '.join(notes)}")
    whole = _encoded(columns, table, targets)
    splits = {split: whole.at(rows) for split, rows in indices.items()}
    if spec.test_source is not None:
        splits["test"], more, more_dropped = _test_split(columns, targets, spec)
        notes, dropped = (*notes, *more), dropped + more_dropped
    if targets.is_guess:
        notes = (
            *notes,
            f"the target {name!r} has {len(targets.class_names)} different whole numbers, taken as classes "
            "(tabular_regression tells them as numbers)",
        )
    data = _data(spec, splits, targets, columns, notes, dropped)
    _tell(data)
    return data


def _complete_rows(table: RawTable, targets: Targets, spec: DataSpec) -> tuple[RawTable, Targets, int]:
    """Leave out the rows without a target, or refuse them; return how many they were."""
    missing = targets.missing
    if len(missing) == 0:
        return table, targets, 0
    if not spec.drop_missing_target:
        raise BadDataError(
            f"{table.source}: the target {targets.name!r} is missing or not finite in {len(missing)} of {len(table)} "
            f"rows: {table.places(missing.tolist())}; repair them, or leave them out with drop_missing_target"
        )
    keep = np.delete(np.arange(len(table)), missing)
    columns = {name: cells.take(keep) for name, cells in table.columns.items()}
    return replace(table, columns=columns), replace(targets, values_N=targets.values_N[keep]), len(missing)


def _refuse_one_value(targets: Targets, spec: DataSpec) -> None:
    different = np.unique(targets.values_N)
    if len(different) > 1:
        return
    if len(different) == 0:
        raise BadDataError(f"{spec.source} has no row with a target {targets.name!r}")
    value = repr(targets.class_names[0]) if targets.kind == "classes" else f"{different[0]:g}"
    raise BadDataError(
        f"{spec.source}: the target {targets.name!r} has 1 value, {value}; there is nothing to tell: choose another "
        "target, or add rows with other values"
    )


def _parts(targets: Targets, spec: DataSpec) -> dict[SplitName, npt.NDArray[np.int64]]:
    """Return split -> rows of the source; each class in its own proportion, numbers as they come."""
    names: list[SplitName] = ["test"] if spec.test_source is None and spec.test_fraction > 0.0 else []
    fractions = [spec.test_fraction] * len(names) + [spec.validation_fraction]
    if targets.kind == "classes":
        labels_N, class_names = targets.values_N, targets.class_names
    else:
        labels_N, class_names = np.zeros(len(targets.values_N), dtype=np.int64), ("row",)
    parts = stratified_split(labels_N, fractions, spec.split_seed, class_names, small_classes="train")
    return dict(zip([*names, "validation", "train"], parts, strict=True))


def _learn_columns(
    features: Mapping[str, Any], separator: str | None, train: npt.NDArray[np.int64]
) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    columns: list[Column] = []
    notes: list[str] = []
    for name, cells in features.items():
        column, told = learn_column(name, cells, separator, train)
        notes += told
        if column is not None:
            columns.append(column)
    return tuple(columns), tuple(notes)


def _encoded(columns: Sequence[Column], table: RawTable, targets: Targets) -> TableSplit:
    rows = encode_rows(columns, table)
    return TableSplit(numbers_ND=rows.numbers_ND, categories_NC=rows.categories_NC, targets_N=targets.values_N)


def _test_split(columns: Sequence[Column], known: Targets, spec: DataSpec) -> tuple[TableSplit, tuple[str, ...], int]:
    """Read the test source as the source was read; return also notes, and how many rows were left out."""
    assert spec.test_source is not None
    table = read_source(spec.test_source)
    if known.name not in table.columns:
        raise BadDataError(
            f"{spec.test_source} has no column {known.name!r}, the target; it has {', '.join(table.columns)}"
        )
    targets = known.of_more_rows(table.columns[known.name], spec.test_source)
    table, targets, dropped = _complete_rows(table, targets, spec)
    if len(table) == 0:
        raise BadDataError(f"{spec.test_source} has no row with a target {known.name!r}")
    rows = encode_rows(columns, table)
    split = TableSplit(numbers_ND=rows.numbers_ND, categories_NC=rows.categories_NC, targets_N=targets.values_N)
    notes = tuple(f"column {name!r} of the test source: {note}" for name, note in rows.notes.items())
    return split, notes, dropped


def _data(
    spec: DataSpec,
    splits: Mapping[SplitName, TableSplit],
    targets: Targets,
    columns: tuple[Column, ...],
    notes: tuple[str, ...],
    dropped: int,
) -> TableData:
    numbers = splits["train"].targets_N if targets.kind == "numbers" else np.zeros(1)
    return TableData(
        source=spec.source,
        train=splits["train"],
        validation=splits["validation"],
        test=splits.get("test"),
        target=targets.name,
        kind=targets.kind,
        class_names=targets.class_names,
        target_mean=float(numbers.mean()),
        target_scale=float(numbers.std()) or 1.0,
        columns=columns,
        notes=notes,
        dropped_rows=dropped,
        fingerprint=_fingerprint(splits, targets.class_names),
    )


def _tell(data: TableData) -> None:
    categories = len(data.input_shape.categories)
    _log.info(
        "table read source=%s rows=%d target=%s kind=%s numbers=%d categories=%d",
        data.source,
        sum(len(split) for split in (data.train, data.validation, data.test) if split is not None),
        data.target,
        data.kind,
        data.input_shape.numbers,
        categories,
    )
    if data.dropped_rows:
        _log.warning("%s: %d rows without a target %r are left out", data.source, data.dropped_rows, data.target)
    for note in data.notes:
        _log.warning("%s: %s", data.source, note)


def _fingerprint(splits: Mapping[SplitName, TableSplit], class_names: tuple[str, ...]) -> str:
    digest = hashlib.sha256(repr(class_names).encode("utf-8", "surrogatepass"))
    names: tuple[SplitName, ...] = ("train", "validation", "test")
    for name in names:
        split = splits.get(name)
        if split is None:
            digest.update(b"none")
            continue
        for array in (split.numbers_ND, split.categories_NC, split.targets_N):
            digest.update(repr(array.shape).encode())
            digest.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).data)
    return digest.hexdigest()
