"""`automl status`, `automl show` and `automl best`: studies and trials in words, or as JSON."""

from typing import Annotated

import typer

from automl.cli.documents import print_json, trial_document
from automl.cli.facts import fact_lines
from automl.cli.options import JsonOption, StorageOption, StudyArgument
from automl.cli.standing import print_standing
from automl.cli.tables import average_in_words, configuration_lines, counts_in_words, number, table
from automl.errors import AutomlError, NothingCompletedError
from studies.ranking import best_on_average
from studies.trial import Trial, TrialState

__all__ = ["best", "show", "status"]


def status(
    study: Annotated[str | None, typer.Argument(help="Name of a study; default: all.", metavar="[STUDY]")] = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> int:
    """Say how the studies of a storage stand, or one of them with its unfinished trials."""
    from automl.env import default_storage
    from automl.lookup import find_study
    from studies.storage import Storage

    if study is not None:
        print_standing(find_study(study, storage).study, as_json=as_json)
        return 0
    with Storage(storage or default_storage()) as opened:
        summaries, url = opened.studies(), opened.url
    if as_json:
        print_json(
            [
                {
                    "study": summary.name,
                    "direction": summary.direction,
                    "trials": {state.value: count for state, count in summary.counts.items()},
                    "imported": summary.imported,
                    "best_value": summary.best_value,
                    "last_activity": None if summary.last_activity is None else summary.last_activity.isoformat(),
                }
                for summary in summaries
            ]
        )
        return 0
    rows = [
        (
            summary.name,
            summary.best_value,
            counts_in_words(summary.counts) + (f", {summary.imported} imported" if summary.imported else ""),
            "-" if summary.last_activity is None else f"{summary.last_activity:%Y-%m-%d %H:%M} UTC",
        )
        for summary in summaries
    ]
    if not rows:
        typer.echo(f"no study in {url} yet")
        return 0
    for line in table(("study", "best", "trials", "last activity"), rows):
        typer.echo(line)
    return 0


def show(
    study: StudyArgument,
    trial: Annotated[
        int | None, typer.Argument(help="Number of a trial; default: a table of all.", metavar="[TRIAL]")
    ] = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> int:
    """Show one trial, or all trials of a study in a table.

    One trial is shown with its configuration, its curve and what is known about it.
    """
    from automl.artifacts import artifacts_root
    from automl.lookup import find_study
    from automl.queueing import retried_as

    found = find_study(study, storage).study
    trials = found.trials()
    if trial is None:
        return _show_all(trials, as_json)
    if not 0 <= trial < len(trials):
        raise _NoSuchTrialError(
            f"study '{study}' has no trial {trial}; "
            + (f"it has 0 to {len(trials) - 1}" if trials else "it has no trials yet")
        )
    again = retried_as(trials, trial)
    if as_json:
        print_json({**trial_document(trials[trial]), "retried_as": again})
        return 0
    _print_trial(trials[trial], artifacts_root(None, found.storage_url, study))
    if again is not None:
        typer.echo(f"  retried as  trial {again}")
    return 0


def best(
    study: StudyArgument,
    count: Annotated[int, typer.Option("--count", "-k", min=1, help="How many, best first.")] = 1,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> int:
    """Print the best complete trials of a study."""
    from automl.artifacts import artifacts_root
    from automl.lookup import find_study

    found = find_study(study, storage).study
    winners = found.best_trials(count)
    if not winners:
        counts = counts_in_words(found.counts())
        raise NothingCompletedError(f"study '{study}' has no completed trial ({counts})")
    if as_json:
        print_json([trial_document(trial) for trial in winners])
        return 0
    root = artifacts_root(None, found.storage_url, study)
    for trial in winners:
        _print_trial(trial, root)
    several = best_on_average(found.trials(), found.direction)
    if several is not None:
        typer.echo(average_in_words(several))
    return 0


class _NoSuchTrialError(AutomlError):
    exit_code = 2


def _show_all(trials: tuple[Trial, ...], as_json: bool) -> int:
    if as_json:
        print_json([trial_document(trial) for trial in trials])
        return 0
    rows = [
        (
            trial.number,
            "imported" if trial.is_imported else trial.state.value,
            trial.last_epoch,
            trial.value if trial.state is TrialState.COMPLETE else trial.reports.get(trial.last_epoch),
            trial.cause,
        )
        for trial in trials
    ]
    for line in table(("trial", "state", "epoch", "value", "cause"), rows):
        typer.echo(line)
    return 0


def _print_trial(trial: Trial, root: str) -> None:
    value = "" if trial.value is None else f", value {number(trial.value)}"
    cause = "" if trial.cause is None else f", cause {trial.cause}"
    state = "imported" if trial.is_imported else trial.state.value
    typer.echo(f"trial {trial.number}: {state}{value}{cause}")
    for line in configuration_lines(trial.configuration):
        typer.echo(f"  {line}")
    if trial.reports:
        curve = ", ".join(f"{epoch}: {number(value)}" for epoch, value in trial.reports.items())
        typer.echo(f"  curve  {curve}")
    for line in fact_lines(trial.attributes, root):
        typer.echo(f"  {line}")
