"""`automl report`."""

from pathlib import Path
from typing import Annotated

import typer

from automl.cli.options import StorageOption, StudyArgument

__all__ = ["report"]


def report(
    study: StudyArgument,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write. Default: beside the study's artifacts."),
    ] = None,
    storage: StorageOption = None,
    artifacts: Annotated[
        str | None, typer.Option("--artifacts", help="Root of the study's artifacts.", metavar="FOLDER|URL")
    ] = None,
) -> int:
    """Write one self-contained HTML page with what the study has found."""
    from automl.artifact_mark import check_mark
    from automl.artifacts import Artifacts, artifacts_root
    from automl.errors import InvalidSpecError
    from automl.lookup import find_study
    from automl.report_page import write_report_page

    found = find_study(study, storage)
    root = artifacts_root(artifacts, found.study.storage_url, study)
    place = Artifacts(root=root, study=study)
    if output is None:
        check_mark(place, found.study)
    page = str(output or place.report)
    try:
        page = write_report_page(found.study, page)
    except OSError as error:
        raise InvalidSpecError([f"output: cannot write {page}: {error.strerror}"], "the command line") from error
    typer.echo(page)
    return 0
