"""Finds out what a table's source is, refuses what cannot be one, and reads it."""

from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import Any

from search_spaces.errors import did_you_mean
from trainers.data.spec import BUILT_IN_TABLES, DataSpec
from trainers.data.table_files import TABLE_KINDS, RawTable, is_table_file, read_table, table_header
from trainers.data.table_targets import TargetKind, read_targets
from trainers.errors import BadDataError

__all__ = ["check_table_source", "count_target_classes", "read_source", "target_column"]

_BUILT_IN_CLASSES = {"iris": 3, "wine": 3, "breast_cancer": 2, "diabetes": None}


def check_table_source(spec: DataSpec) -> None:
    """Refuse sources that cannot be there or be of use, from names alone.

    Raises:
        BadDataError: the message says what was given, the nearest name, and what is allowed.
    """
    if spec.source in BUILT_IN_TABLES:
        names = tuple(_built_in_names(spec.source)) if spec.target is not None or spec.ignore else ()
    else:
        names = table_header(_existing_file(spec.source))
    if names:
        _check_columns(names, spec)
    if spec.test_source is not None:
        table_header(_existing_file(spec.test_source))


def read_source(source: str, only: Collection[str] | None = None) -> RawTable:
    """Read a built-in table or a file.

    Args:
        source: its name or path.
        only: names of the columns to read; None: all.

    Raises:
        BadDataError: there is no such table, or it cannot be read.
    """
    if source in BUILT_IN_TABLES:
        table = _built_in(source)
        return RawTable(
            source=source, columns={name: cells for name, cells in table.items() if only is None or name in only}
        )
    return read_table(_existing_file(source), only)


def target_column(names: Collection[str], spec: DataSpec) -> str:
    """Return the name of the column that is to be told.

    Raises:
        BadDataError: columns that the specification names are not there, or nothing is left to tell from.
    """
    _check_columns(names, spec)
    return spec.target or [name for name in names if name not in spec.ignore][-1]


def count_target_classes(spec: DataSpec, wanted: TargetKind | None) -> int | None:
    """Count the classes of the target column, of which alone the cells are read; None: it holds numbers.

    Raises:
        BadDataError: see `read_source`, `target_column` and `read_targets`.
    """
    if spec.source in BUILT_IN_TABLES and spec.target is None and wanted is None and not spec.ignore:
        return _BUILT_IN_CLASSES[spec.source]
    if spec.source in BUILT_IN_TABLES:
        table = read_source(spec.source)
        name = target_column(table.columns, spec)
        return _classes_of(table, name, wanted)
    path = _existing_file(spec.source)
    facts = path.stat()
    name = target_column(table_header(path), spec)
    return _classes_in_file(path, name, wanted, facts.st_size, facts.st_mtime_ns)


@lru_cache(maxsize=16)
def _classes_in_file(path: Path, name: str, wanted: TargetKind | None, size: int, changed_ns: int) -> int | None:
    # Size and time of change are part of the key alone: one file is asked about again and again.
    return _classes_of(read_table(path, only=(name,)), name, wanted)


def _classes_of(table: RawTable, name: str, wanted: TargetKind | None) -> int | None:
    targets = read_targets(name, table.columns[name], table.separator, wanted)
    return len(targets.class_names) if targets.kind == "classes" else None


def _check_columns(names: Collection[str], spec: DataSpec) -> None:
    wanted = {"target": [spec.target] if spec.target is not None else [], "ignore": spec.ignore}
    problems = [
        f"{field}: no column {name!r};{did_you_mean(name, names)}"
        for field, given in wanted.items()
        for name in given
        if name not in names
    ]
    if spec.target is not None and spec.target in spec.ignore:
        problems.append(f"the target {spec.target!r} is to be ignored, too;")
    if len([name for name in names if name not in spec.ignore]) < 2:
        problems.append("needed: a column to tell, and at least one to tell it from;")
    if problems:
        raise BadDataError(f"{spec.source}: {' '.join(problems)} columns: {', '.join(names)}")


def _existing_file(source: str) -> Path:
    path = Path(source).expanduser()
    allowed = f"allowed: {', '.join(BUILT_IN_TABLES)}, or a {TABLE_KINDS} file"
    if path.is_file() and is_table_file(path):
        return path
    if path.exists():
        raise BadDataError(f"{source!r} is {'a folder' if path.is_dir() else 'a file of an unknown kind'}; {allowed}")
    beside = [entry.name for entry in path.parent.iterdir() if is_table_file(entry)] if path.parent.is_dir() else []
    hint = did_you_mean(source, BUILT_IN_TABLES) or did_you_mean(path.name, beside)
    raise BadDataError(f"no data set {source!r};{hint} {allowed}")


def _built_in(name: str) -> dict[str, Any]:
    """Return the columns of one of scikit-learn's own tables, the target last; classes have their names."""
    import pyarrow as pa

    bunch = _bunch(name)
    columns = {column: pa.chunked_array([bunch.data[:, i]]) for i, column in enumerate(bunch.feature_names)}
    targets = bunch.target
    if _BUILT_IN_CLASSES[name] is not None:
        targets = [str(bunch.target_names[label]) for label in targets]
    return {**columns, "target": pa.chunked_array([targets])}


def _built_in_names(name: str) -> tuple[str, ...]:
    return (*(str(column) for column in _bunch(name).feature_names), "target")


def _bunch(name: str) -> Any:
    from sklearn import datasets  # 0.9 s to import, so only for who uses it

    return getattr(datasets, f"load_{name}")()
