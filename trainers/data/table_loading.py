"""Makes a table in memory of what a file holds: rows and splits are chosen, and cells become numbers; no torch."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from trainers.data.spec import DataSpec, SplitName
from trainers.data.splits import cut_splits, fingerprint
from trainers.data.table_cells import LARGEST_NUMBER
from trainers.data.table_columns import Column, encode_rows, learn_column
from trainers.data.table_files import RawTable
from trainers.data.table_sources import read_source, target_column
from trainers.data.table_targets import TargetKind, Targets, read_targets
from trainers.data.tables import TableData, TableSplit
from trainers.errors import BadDataError

__all__ = ["load_table"]

_log = logging.getLogger(__name__)


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
    indices = _cut(targets, spec)
    features = {
        column: cells for column, cells in table.columns.items() if column != name and column not in spec.ignore
    }
    columns, notes = _learn_columns(features, table.separator, indices["train"])
    if not columns:
        raise BadDataError(f"{spec.source}: no column says anything about {name!r}: {'; '.join(notes)}")
    whole, _, large = _encoded(columns, table, targets)
    notes = (*notes, *(f"column {name!r}: {words}" for name, words in large.items()))
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
            f"{table.source}: the target {targets.name!r} is {_what_is_missing(targets)} in {len(missing)} of "
            f"{len(table)} rows: {table.places(missing.tolist())}; repair them, or leave them out: "
            "--drop-missing-target (in Python drop_missing_target=True)"
        )
    keep = np.delete(np.arange(len(table)), missing)
    columns = {name: cells.take(keep) for name, cells in table.columns.items()}
    complete = replace(table, columns=columns, kept=keep.tolist())
    return complete, replace(targets, values_N=targets.values_N[keep]), len(missing)


def _what_is_missing(targets: Targets) -> str:
    return "missing" if targets.kind == "classes" else f"missing, infinite or beyond {LARGEST_NUMBER:g}"


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


def _cut(targets: Targets, spec: DataSpec) -> dict[SplitName, npt.NDArray[np.int64]]:
    """Return split -> rows of the source; each class in its own proportion, numbers as they come."""
    brought: tuple[SplitName, ...] = () if spec.test_source is None else ("test",)
    if targets.kind == "classes":
        labels_N, class_names = targets.values_N, targets.class_names
    else:
        labels_N, class_names = np.zeros(len(targets.values_N), dtype=np.int64), ("row",)
    return cut_splits(labels_N, class_names, spec, brought, small_classes="train")


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


def _encoded(
    columns: Sequence[Column], table: RawTable, targets: Targets
) -> tuple[TableSplit, Mapping[str, str], Mapping[str, str]]:
    """Return the rows as a network takes them, what of them the columns could not say, and which are too large."""
    rows = encode_rows(columns, table)
    split = TableSplit(numbers_ND=rows.numbers_ND, categories_NC=rows.categories_NC, targets_N=targets.values_N)
    return split, rows.notes, rows.too_large


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
    split, found, large = _encoded(columns, table, targets)
    notes = tuple(f"column {name!r} of the test source: {note}" for name, note in [*found.items(), *large.items()])
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
        fingerprint=fingerprint(
            targets.class_names,
            {name: (split.numbers_ND, split.categories_NC, split.targets_N) for name, split in splits.items()},
        ),
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
