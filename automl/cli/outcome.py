"""How a search is shown while it runs, and what is said when it has ended."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import typer

from automl.cli.tables import configuration_lines, counts_in_words, number
from automl.objective import observed_value
from automl.observer import Observer
from automl.progress import ProgressObserver
from automl.session import SearchOutcome
from studies.trial import Trial, TrialState

__all__ = ["observer_for", "print_outcome"]


def observer_for(*, quiet: bool) -> Observer:
    """A live view on a terminal, dated lines elsewhere, nothing when quiet."""
    return Observer() if quiet else ProgressObserver(sys.stderr)


def print_outcome(outcome: SearchOutcome) -> int:
    """Say what came out and what to do next; return the exit code."""
    counts = outcome.study.counts()
    typer.echo(f"study '{outcome.study.name}': {outcome.reason}; {counts_in_words(counts)}")
    if outcome.best is None:
        typer.echo("no completed trial" + _why_not(outcome))
    else:
        _print_best(outcome, outcome.best)
    if outcome.report is not None:
        typer.echo(f"report: {_short(outcome.report)}")
    _print_next_step(outcome, counts)
    if outcome.exit_code == 1:
        message = (
            f"automl: {outcome.reason}\nautoml show {_quoted(outcome.study.name)} lists the trials and their causes"
        )
        typer.echo(message, err=True)
    return outcome.exit_code


def _print_best(outcome: SearchOutcome, best: Trial) -> None:
    epoch = best.attributes.get("best_epoch")
    at = "" if epoch is None else f" (epoch {epoch} of {outcome.spec.epochs})"
    value = observed_value(best)
    assert value is not None
    typer.echo(f"best trial: {best.number}, {outcome.spec.metric} {number(value)} on the validation split{at}")
    if outcome.test is not None:
        measured = ", ".join(f"{name} {number(value)}" for name, value in outcome.test.items())
        typer.echo(f"on the test split, which the search never saw: {measured}")
    for line in configuration_lines(best.configuration):
        typer.echo(f"  {line}")


def _why_not(outcome: SearchOutcome) -> str:
    causes: dict[str, int] = {}
    for trial in outcome.study.trials():
        if trial.state is TrialState.FAILED:
            causes[trial.cause or "unknown"] = causes.get(trial.cause or "unknown", 0) + 1
    if not causes:
        return ""
    return "; failures: " + ", ".join(f"{count} {cause}" for cause, count in sorted(causes.items()))


def _print_next_step(outcome: SearchOutcome, counts: Mapping[TrialState, int]) -> None:
    name = outcome.study.name
    unfinished = counts.get(TrialState.PAUSED, 0)
    if outcome.exit_code >= 128 or unfinished:
        typer.echo(f"go on with: automl resume {_quoted(name)}")
    elif outcome.exit_code == 0 and outcome.reason.startswith(("all ", "nothing left")):
        typer.echo(f"more: automl resume {_quoted(name)} --trials {2 * outcome.spec.trials}")


def _quoted(name: str) -> str:
    if name.startswith("-"):
        return f"-- {name}"  # or it would be taken for an option
    return name if name.replace("-", "").replace("_", "").isalnum() else "'" + name.replace("'", "'\\''") + "'"


def _short(path: Path) -> str:
    """The path as it is read most easily from the working folder."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
