"""`automl export`."""

from pathlib import Path
from typing import Annotated

import typer

from automl.cli.options import StorageOption, StudyArgument
from studies.export import ExportError, ExportFormat, export_bytes, format_of, write_export

__all__ = ["export"]


def export(
    study: StudyArgument,
    file_format: Annotated[
        ExportFormat | None,
        typer.Option("--format", help="What to write. Default: as the suffix of --output says; csv without a file."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write. Default: standard output.", metavar="FILE"),
    ] = None,
    storage: StorageOption = None,
) -> int:
    """Write all trials of a study as CSV, JSON or parquet.

    A row has a trial's number, state, value, cause, attempt, last epoch, times and duration, a column `param_NAME` for
    each parameter and `attribute_NAME` for each attribute. JSON also has the reports. Numbers that JSON lacks are the
    texts `nan`, `inf` and `-inf`. Text is written as it is, also where a spreadsheet takes it for a formula.
    """
    from automl.lookup import find_study

    chosen = file_format or ("csv" if output is None else format_of(output))
    if output is None and chosen == "parquet":
        raise ExportError("parquet is no text for a terminal or a pipe; give --output FILE")
    found = find_study(study, storage).study
    if output is None:
        typer.echo(export_bytes(found, chosen), nl=False)
    else:
        typer.echo(write_export(found, output, chosen))
    return 0
