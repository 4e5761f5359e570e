"""A study and its trials as a file for other programs: CSV, JSON or parquet."""

import codecs
import csv
import io
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from search_spaces.strict_json import strict_json
from studies.errors import StudyError
from studies.figures.snapshot import metric_name
from studies.trial import Trial
from studies.trial_table import Column, Kind, columns_of, facts_of, in_text
from studies.whole_file import written_beside

if TYPE_CHECKING:
    from studies.study import Study

__all__ = ["ExportError", "ExportFormat", "export_bytes", "format_of", "write_export"]

ExportFormat: TypeAlias = Literal["csv", "json", "parquet"]

_FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)
_PANDAS_TYPES: Mapping[Kind, str] = {
    "integer": "Int64",  # unlike int64 it knows missing values
    "number": "float64",
    "boolean": "boolean",
    "text": "str",
    "moment": "datetime64[us, UTC]",
}
"""The types that pandas gives the columns when it reads the parquet file."""


class ExportError(StudyError, ValueError):
    """A study cannot be exported in this way; the message says which way can."""


def format_of(path: Path) -> ExportFormat:
    """The format that a file's suffix names, in upper or lower case.

    Raises:
        ExportError: it names none.
    """
    for known in _FORMATS:
        if path.suffix.lower() == f".{known}":
            return known
    suffixes = ", ".join(f".{known}" for known in _FORMATS)
    what = f"the suffix {path.suffix!r}" if path.suffix else "no suffix"
    raise ExportError(f"{path} has {what}, which names no format; end it in one of {suffixes}, or name the format")


def write_export(study: "Study", path: Path, file_format: ExportFormat | None = None) -> Path:
    """Write a study to a file and return where it is; the file is whole or is not there.

    A CSV file with other letters than ASCII starts with a byte order mark, without which spreadsheets take it for the
    machine's old encoding; read it as `utf-8-sig`.

    Args:
        study: what is written.
        path: the file; its folder is made, and a file that is there is replaced.
        file_format: None: as the suffix says.

    Raises:
        ExportError: the format is not known, its packages are missing, or the file cannot be written.
    """
    target = path.expanduser()
    chosen = file_format or format_of(target)
    content = export_bytes(study, chosen)
    if chosen == "csv" and not content.isascii():
        content = codecs.BOM_UTF8 + content
    try:
        with written_beside(target) as beside:
            beside.write_bytes(content)
    except OSError as error:
        raise ExportError(f"cannot write {target}: {error.strerror}; choose another place") from error
    return target


def export_bytes(study: "Study", file_format: ExportFormat) -> bytes:
    """The content of an export; text is UTF-8.

    CSV and parquet are the table of `trial_table.columns_of`; JSON also has the reports, and the study's own facts.
    The number of statements does not grow with the trials.

    Raises:
        ExportError: the packages that the format needs are missing.
    """
    match file_format:
        case "csv":
            return _csv(columns_of(study.trials()))
        case "json":
            return _json(study)
        case "parquet":
            return _parquet(columns_of(study.trials()))


def _csv(columns: Sequence[Column]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(column.name for column in columns)
    for row in zip(*(column.values for column in columns), strict=True):
        writer.writerow(map(in_text, row))
    return text.getvalue().encode()


def _json(study: "Study") -> bytes:
    specification = study.specification
    metric = metric_name(specification)
    # In this order: what is reported between the two readings has no epoch in the first one, and is left out.
    trials, metrics = study.trials(), study.metrics()
    document = {
        "study": study.name,
        "direction": study.direction,
        "metric": metric,
        "specification": specification,
        "attributes": study.attributes,
        "trials": [_document(trial, metric, metrics.get(trial.id, {})) for trial in trials],
    }
    return f"{strict_json(document, indent=2)}\n".encode()


def _document(trial: Trial, metric: str, metrics: Mapping[int, Mapping[str, float]]) -> Mapping[str, object]:
    """A trial as JSON; in its reports the objective stands under its own name beside all that was measured with it."""
    return {
        **{name: in_text(fact) if isinstance(fact, datetime) else fact for name, fact in facts_of(trial).items()},
        "configuration": trial.configuration,
        "reports": {str(epoch): {metric: value, **metrics.get(epoch, {})} for epoch, value in trial.reports.items()},
        "attributes": trial.attributes,
    }


def _parquet(columns: Sequence[Column]) -> bytes:
    try:
        import pandas
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise ExportError(
            f"parquet needs the package {error.name!r}, which is not installed; run: pip install pandas pyarrow,"
            " or export csv or json"
        ) from error
    # An empty frame tells the types to Arrow, and through the file to pandas; Arrow alone keeps NaN and missing apart.
    frame = pandas.DataFrame({column.name: pandas.Series(dtype=_PANDAS_TYPES[column.kind]) for column in columns})
    schema = pyarrow.Schema.from_pandas(frame, preserve_index=False)
    table = pyarrow.Table.from_pydict({column.name: column.values for column in columns}, schema=schema)
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(table, sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content
