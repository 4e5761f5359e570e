"""`automl enqueue`, `automl retry` and `automl import`: trials that people bring into a study."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from automl.cli.options import StorageOption, StudyArgument, given_fields, with_fields
from automl.cli.search import QuietOption
from studies.figures.words import counted

if TYPE_CHECKING:
    from automl.results import Source
    from studies.study import Study

__all__ = ["enqueue", "import_", "retry"]

_WHERE = (
    "storage", "artifacts", "data", "concurrency", "gpus_per_trial", "cpus_per_trial", "memory_per_trial", "spread",
    "executor", "ray_address", "wait_for_nodes",
)  # fmt: skip
"""Where a search runs, and on what: the fields of `retry`, which changes nothing else."""


def enqueue(
    study: StudyArgument,
    values: Annotated[
        list[str] | None, typer.Argument(help="What is fixed: lr=0.01 op=conv3.", metavar="[NAME=VALUE]...")
    ] = None,
    count: Annotated[int, typer.Option("--count", min=1, help="How often each configuration is tried.")] = 1,
    file: Annotated[
        Path | None,
        typer.Option("--file", help="Configurations: a .csv table, or a .json list of objects.", metavar="FILE"),
    ] = None,
    storage: StorageOption = None,
) -> int:
    """Queue configurations for a study to try; the search completes what is left open.

    They are tried before the sampler's own proposals, in their order, and take their places in the budget then. One
    that was tried before is tried again.
    """
    from automl import queueing
    from automl.configuration_text import read_table, row_of_words
    from automl.lookup import find_study

    words = [row_of_words(values)] if values else []
    rows = [*words, *(read_table(file).rows if file is not None else ())]
    found = find_study(study, storage).study
    numbers = queueing.enqueue(found, rows, count=count)
    typer.echo(f"queued {_range(numbers)} of study '{study}'")
    _say_how_they_start(found)
    return 0


@with_fields(_WHERE)
def retry(
    study: StudyArgument,
    failed: Annotated[bool, typer.Option("--failed", help="All trials that have failed.")] = False,
    trial: Annotated[
        list[int] | None, typer.Option("--trial", help="Only this failed trial; may be given again.", metavar="N")
    ] = None,
    queue_only: Annotated[bool, typer.Option("--queue-only", help="Only queue them; search later.")] = False,
    quiet: QuietOption = False,
    **options: Any,
) -> int:
    """Try the configurations of failed trials again, and go on with the study.

    Each is tried once more, as a new trial for which the study's limit is raised; the failed trial stays as it is.
    """
    from automl import api, queueing
    from automl.cli.outcome import observer_for, print_outcome
    from automl.errors import InvalidSpecError
    from automl.lookup import find_study

    if not failed and not trial:
        raise InvalidSpecError(["say which trials: --failed for all, or --trial N"], "the command line")
    fields = given_fields(options)
    found = find_study(study, options["storage"])
    result = queueing.retry(found.study, trial or None)
    for number, after in result.known.items():
        typer.echo(f"trial {number} was tried again as trial {after}")
    for number, reason in result.left_out.items():
        typer.echo(f"trial {number} cannot be tried again: {reason}")
    if not result.queued:
        typer.echo("nothing to retry")
        return 0
    links = ", ".join(f"{new} (as {old})" for old, new in result.queued.items())
    typer.echo(f"queued {counted(len(result.queued), 'trial')}: {links}")
    if queue_only:
        _say_how_they_start(found.study)
        return 0
    return print_outcome(api.resume(study, observer=observer_for(quiet=quiet), **{**fields, "storage": found.storage}))


def import_(
    study: StudyArgument,
    other: Annotated[
        str | None, typer.Option("--from", help="Name of the study that has the results.", metavar="STUDY")
    ] = None,
    other_storage: Annotated[
        str | None,
        typer.Option(
            "--from-storage", help="Its database. Default: this study's, then those used lately.", metavar="URL"
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--from-file", help="A .csv or .json file with a row per trial.", metavar="FILE"),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option("--value", help="Column of the file with the objective. Default: value.", metavar="NAME"),
    ] = None,
    top: Annotated[int | None, typer.Option("--top", min=1, help="Only the best of them.", metavar="K")] = None,
    storage: StorageOption = None,
) -> int:
    """Give a study the results of another study or of a file to learn from.

    Complete trials with a finite objective become trials of this study that hold no place in its budget and are never
    its best. What does not fit its search space is left out. A file has a column for each parameter, as NAME or
    param_NAME.
    """
    from automl import results, warm_start
    from automl.continuation import present_space
    from automl.lookup import find_study

    _check_one_source(other, other_storage, file, value)
    found = find_study(study, storage)
    history = present_space(found.study)
    if file is not None:
        source = results.from_file(file, value or results.VALUE_COLUMN, history)
    else:
        source = _of_other_study(str(other), other_storage, found.study, found.storage)
    fitted = warm_start.fit(source, history, found.study.direction, top=top)
    added = warm_start.add(found.study, fitted)
    typer.echo(f"study '{study}' has {counted(added, 'more imported trial')} from {source.name}")
    _say_what_is_not_new(len(fitted.results) - added, fitted.without_value, fitted.left_out)
    return 0


def _check_one_source(other: str | None, storage: str | None, file: Path | None, value: str | None) -> None:
    from automl.errors import InvalidSpecError

    problems = []
    if (other is None) == (file is None):
        problems.append("say where the results are: either --from STUDY or --from-file FILE")
    if file is not None and storage is not None:
        problems.append("--from-storage belongs to --from, and a file was given")
    if other is not None and value is not None:
        problems.append("--value belongs to --from-file, and a study was given")
    if problems:
        raise InvalidSpecError(problems, "the command line")


def _of_other_study(name: str, given: str | None, study: "Study", home: str) -> "Source":
    from automl import results
    from automl.errors import InvalidSpecError
    from automl.lookup import find_study
    from studies.errors import StudyNotFoundError

    try:
        other = find_study(name, given or home).study
    except StudyNotFoundError:
        if given is not None:
            raise
        other = find_study(name).study
    if (other.name, other.storage_url) == (study.name, study.storage_url):
        raise InvalidSpecError([f"from: study '{name}' cannot learn from itself; name another one"], "the command line")
    return results.from_study(other)


def _say_what_is_not_new(known: int, without_value: int, left_out: Sequence[str]) -> None:
    from automl.warm_start import first_of

    if known:
        typer.echo(f"there already: {known}")
    if without_value:
        typer.echo(f"left out: {counted(without_value, 'trial')} without a finite objective")
    if left_out:
        typer.echo(f"left out: {counted(len(left_out), 'result')} outside of the search space")
        for reason in first_of(left_out):
            typer.echo(f"  {reason}")


def _say_how_they_start(study: "Study") -> None:
    from automl.cli.outcome import command
    from automl.queueing import places_needed, places_wanting
    from automl.searchers import processes, searchers

    view = study.look()
    limit, wanting = view.standing.limits.trials, places_wanting(view)
    if limit is not None and wanting:
        typer.echo(f"no place for {counted(wanting, 'queued trial')} within the study's limit of {limit}", err=True)
        typer.echo(f"start with: {command('resume', study.name, '--trials', str(places_needed(view)))}")
    elif searching := searchers(view):
        typer.echo(f"{processes(searching)} searching now will start what was queued")
    else:
        typer.echo(f"start with: {command('resume', study.name)}")


def _range(numbers: Sequence[int]) -> str:
    """`trial 3`, or `trials 3 to 12`: the numbers of one wish follow each other."""
    return f"trial {numbers[0]}" if len(numbers) == 1 else f"trials {numbers[0]} to {numbers[-1]}"
