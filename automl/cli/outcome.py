"""How a search is shown while it runs, and what is said when it has ended."""

import math
import shlex
import sys
from collections.abc import Iterator, Mapping

import typer

from automl.artifacts import Artifacts, artifacts_root
from automl.cli.tables import average_in_words, configuration_lines, counts_in_words, number, short_place
from automl.log import leave_out_epochs
from automl.objective import observed_value
from automl.observer import Observer
from automl.progress import ProgressObserver
from automl.queueing import places_needed, places_wanting
from automl.session import SearchOutcome
from automl.stopping import is_time_up, winner
from studies.figures.overview import overview_of
from studies.figures.sections import guessing_sentence
from studies.figures.snapshot import snapshot_of
from studies.figures.words import counted
from studies.ranking import best_on_average
from studies.trial import Trial, TrialState

__all__ = ["command", "observer_for", "print_outcome"]


def observer_for(*, quiet: bool) -> Observer:
    """A live view on a terminal, dated lines elsewhere, nothing when quiet."""
    if not quiet:
        return ProgressObserver(sys.stderr)
    leave_out_epochs()
    return Observer()


def print_outcome(outcome: SearchOutcome) -> int:
    """Say what came out and what to do next; return the exit code."""
    counts = outcome.study.counts()
    typer.echo(f"study '{outcome.study.name}': {outcome.reason}; {counts_in_words(counts)}")
    if outcome.best is None:
        typer.echo("no completed trial" + _why_not(outcome))
    else:
        _print_best(outcome, outcome.best)
    if outcome.report is not None:
        typer.echo(f"report: {short_place(outcome.report)}")
    for line in _what_was_looked_into(outcome):
        typer.echo(line)
    _print_next_step(outcome, counts)
    if outcome.exit_code == 1:
        show = command("show", outcome.study.name)
        typer.echo(f"automl: {outcome.reason}\n{show} lists the trials and their causes", err=True)
    return outcome.exit_code


def _print_best(outcome: SearchOutcome, best: Trial) -> None:
    epoch = best.attributes.get("best_epoch")
    at = "" if epoch is None else f" (epoch {epoch} of {outcome.spec.epochs})"
    value = observed_value(best)
    assert value is not None
    typer.echo(f"best trial: {best.number}, {outcome.spec.metric} {number(value)} on the validation split{at}")
    several = best_on_average(outcome.study.trials(), outcome.spec.objective_direction)
    if several is not None:
        typer.echo(average_in_words(several))
    if (sentence := guessing_sentence(overview_of(snapshot_of(outcome.study)))) is not None:
        typer.echo(sentence)
    if outcome.test is not None:
        measured = ", ".join(f"{name} {number(value)}" for name, value in outcome.test.items())
        typer.echo(f"on the test split, which the search never saw: {measured}")
    for line in configuration_lines(best.configuration):
        typer.echo(f"  {line}")
    if outcome.spec.set:
        typer.echo(f"  set: {' '.join(f'{name}={number(value)}' for name, value in outcome.spec.set.items())}")


def _what_was_looked_into(outcome: SearchOutcome) -> Iterator[str]:
    """Where the files of TensorBoard and of the profiler are."""
    study = outcome.study
    artifacts = Artifacts(root=artifacts_root(outcome.spec.artifacts, study.storage_url, study.name), study=study.name)
    if outcome.spec.tensorboard:
        folder = short_place(f"{artifacts.root}/{artifacts.folder}/tensorboard")
        yield f"curves: {shlex.join(['tensorboard', '--logdir', folder])}"
    if outcome.best is not None and (profile := outcome.best.attributes.get("profile")) is not None:
        yield f"profile of trial {outcome.best.number}: {short_place(f'{artifacts.root}/{profile}')}"


def _why_not(outcome: SearchOutcome) -> str:
    causes: dict[str, int] = {}
    for trial in outcome.study.trials():
        if trial.state is TrialState.FAILED:
            causes[trial.cause or "unknown"] = causes.get(trial.cause or "unknown", 0) + 1
    if not causes:
        return ""
    return "; failures: " + ", ".join(f"{count} {cause}" for cause, count in sorted(causes.items()))


def command(verb: str, study: str, *flags: str) -> str:
    """A command about a study, as it can be pasted into a shell."""
    # A name that begins with a dash would be taken for an option.
    words = [verb, *flags, "--", study] if study.startswith("-") else [verb, study, *flags]
    return f"automl {shlex.join(words)}"


def _print_next_step(outcome: SearchOutcome, counts: Mapping[TrialState, int]) -> None:
    name, view = outcome.study.name, outcome.study.look()
    unfinished = counts.get(TrialState.PAUSED, 0)
    limits = view.standing.limits
    if outcome.exit_code < 128 and limits.timeout_s is not None and is_time_up(view.standing):
        # A slow end may have taken the search far beyond its limit.
        longer_s = 2.0 * max(limits.timeout_s, math.ceil(view.standing.searched_s - limits.timeout_s))
        typer.echo(f"go on with: {command('resume', name, '--timeout', f'{longer_s:g}')}")
    elif outcome.exit_code < 128 and winner(view.trials, limits, outcome.spec.objective_direction) is not None:
        typer.echo(f"go on with a better target: {command('resume', name, '--target-value', 'VALUE')}")
    elif outcome.exit_code >= 128 or unfinished:
        typer.echo(f"go on with: {command('resume', name)}")
    elif limits.trials is not None and (wanting := places_wanting(view)):
        more = command("resume", name, "--trials", str(places_needed(view)))
        typer.echo(f"no place for {counted(wanting, 'queued trial')}; start with: {more}")
    elif outcome.exit_code == 0 and outcome.reason.startswith(("all ", "the only ", "nothing left")):
        typer.echo(f"more: {command('resume', name, '--trials', str(2 * (limits.trials or outcome.spec.trials)))}")
