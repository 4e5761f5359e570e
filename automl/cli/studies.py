"""`automl status`, `automl show` and `automl best`: studies and trials in words, or as JSON."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from automl.cli.options import JsonOption, StorageOption, StudyArgument
from automl.cli.tables import configuration_lines, counts_in_words, number, table
from automl.errors import AutomlError, NothingCompletedError
from studies.trial import Trial, TrialState

__all__ = ["best", "show", "status"]


def status(
    study: Annotated[str | None, typer.Argument(help="Name of a study; default: all.", metavar="[STUDY]")] = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> int:
    """Say how the studies of a storage stand, or one of them with its unfinished trials."""
    from automl.env import default_storage
    from studies.storage import Storage

    if study is not None:
        return _status_of(study, storage, as_json)
    with Storage(storage or default_storage()) as opened:
        summaries = opened.studies()
    if as_json:
        _print_json(
            [
                {
                    "study": summary.name,
                    "direction": summary.direction,
                    "trials": {state.value: count for state, count in summary.counts.items()},
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
            counts_in_words(summary.counts),
            "-" if summary.last_activity is None else f"{summary.last_activity:%Y-%m-%d %H:%M} UTC",
        )
        for summary in summaries
    ]
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
    from automl.lookup import find_study

    trials = find_study(study, storage).study.trials()
    if trial is None:
        return _show_all(trials, as_json)
    if not 0 <= trial < len(trials):
        raise _NoSuchTrialError(
            f"study '{study}' has no trial {trial}; "
            + (f"it has 0 to {len(trials) - 1}" if trials else "it has no trials yet")
        )
    if as_json:
        _print_json(_as_json(trials[trial]))
    else:
        _print_trial(trials[trial])
    return 0


def best(
    study: StudyArgument,
    count: Annotated[int, typer.Option("--count", "-k", min=1, help="How many, best first.")] = 1,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> int:
    """Print the best complete trials of a study."""
    from automl.lookup import find_study

    found = find_study(study, storage).study
    winners = found.best_trials(count)
    if not winners:
        counts = counts_in_words(found.counts())
        raise NothingCompletedError(f"study '{study}' has no completed trial ({counts})")
    if as_json:
        _print_json([_as_json(trial) for trial in winners])
        return 0
    for trial in winners:
        _print_trial(trial)
    return 0


class _NoSuchTrialError(AutomlError):
    exit_code = 2


def _status_of(name: str, storage: str | None, as_json: bool) -> int:
    from automl.lookup import find_study

    study = find_study(name, storage).study
    trials = study.trials()
    winner = study.best_trial()
    unfinished = [trial for trial in trials if not trial.state.is_ended]
    budget = study.specification.get("trials")
    if as_json:
        _print_json(
            {
                "study": study.name,
                "direction": study.direction,
                "budget": budget,
                "trials": {state.value: count for state, count in study.counts().items()},
                "best": None if winner is None else _as_json(winner),
                "unfinished": [_as_json(trial) for trial in unfinished],
            }
        )
        return 0
    ended = sum(trial.state.is_ended and trial.state.is_counted for trial in trials)
    of = "" if budget is None else f" of {budget}"
    typer.echo(f"study '{study.name}': {ended}{of} trials ended; {counts_in_words(study.counts())}")
    if winner is not None:
        typer.echo(f"best: trial {winner.number}, {number(winner.value)}")
    rows = [(t.number, t.state.value, t.last_epoch, t.reports.get(t.last_epoch), t.owner) for t in unfinished]
    if rows:
        for line in table(("trial", "state", "epoch", "value", "owner"), rows):
            typer.echo(line)
    return 0


def _show_all(trials: tuple[Trial, ...], as_json: bool) -> int:
    if as_json:
        _print_json([_as_json(trial) for trial in trials])
        return 0
    rows = [
        (
            trial.number,
            trial.state.value,
            trial.last_epoch,
            trial.value if trial.state is TrialState.COMPLETE else trial.reports.get(trial.last_epoch),
            trial.cause,
        )
        for trial in trials
    ]
    for line in table(("trial", "state", "epoch", "value", "cause"), rows):
        typer.echo(line)
    return 0


def _print_trial(trial: Trial) -> None:
    value = "" if trial.value is None else f", value {number(trial.value)}"
    cause = "" if trial.cause is None else f", cause {trial.cause}"
    typer.echo(f"trial {trial.number}: {trial.state.value}{value}{cause}")
    for line in configuration_lines(trial.configuration):
        typer.echo(f"  {line}")
    if trial.reports:
        curve = ", ".join(f"{epoch}: {number(value)}" for epoch, value in trial.reports.items())
        typer.echo(f"  curve  {curve}")
    for name, fact in trial.attributes.items():
        text = str(fact) if name == "traceback" else number(fact)
        typer.echo(f"  {name}  {text.rstrip()}" if "\n" not in text else f"  {name}\n{text.rstrip()}")


def _as_json(trial: Trial) -> Mapping[str, Any]:
    return {
        "trial": trial.number,
        "state": trial.state.value,
        "value": trial.value,
        "cause": trial.cause,
        "epoch": trial.last_epoch,
        "attempt": trial.attempt,
        "configuration": dict(trial.configuration),
        "reports": {str(epoch): value for epoch, value in trial.reports.items()},
        "started_at": None if trial.started_at is None else trial.started_at.isoformat(),
        "ended_at": None if trial.ended_at is None else trial.ended_at.isoformat(),
        "attributes": dict(trial.attributes),
    }


def _print_json(document: object) -> None:
    typer.echo(json.dumps(_strict(document), indent=2, allow_nan=False))


def _strict(value: Any) -> Any:
    """The document without NaN and infinities, which JSON does not have."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    if isinstance(value, Mapping):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    return value
