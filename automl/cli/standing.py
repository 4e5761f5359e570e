"""How one study stands: its limits, what it has come to, and who works on what."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from automl.cli.documents import print_json, trial_document
from automl.cli.tables import counts_in_words, number, table
from studies.figures.words import counted
from studies.trial import Trial

if TYPE_CHECKING:
    from automl.searchers import Searcher
    from studies.study import Study, View

__all__ = ["print_standing"]


def print_standing(study: "Study", *, as_json: bool) -> None:
    """Print how a study stands, with its unfinished trials."""
    from automl.searchers import searchers

    view = study.look()
    searching = searchers(view)
    if as_json:
        print_json(_document(study, view, searching))
        return
    typer.echo(_progress(study, view))
    typer.echo(_limits(view))
    best = study.best_trial()
    if best is not None:
        typer.echo(f"best: trial {best.number}, {number(best.value)}")
    if (stopped_at := _stop_under_way(view, searching)) is not None:
        typer.echo(f"stop requested at {stopped_at:%H:%M:%S} UTC: who searched then ends after the running epoch")
    for line in _unfinished(view, searching):
        typer.echo(line)


def _document(study: "Study", view: "View", searching: Sequence["Searcher"]) -> Mapping[str, Any]:
    best, limits = study.best_trial(), view.standing.limits
    stopped_at = view.standing.stopped_at
    return {
        "study": study.name,
        "direction": study.direction,
        "budget": limits.trials,
        "limits": {"trials": limits.trials, "timeout_s": limits.timeout_s, "target_value": limits.target_value},
        "searched_s": view.standing.searched_s,
        "stop_requested_at": None if stopped_at is None else _moment(stopped_at).isoformat(),
        "space_version": len(study.space_versions()) or None,
        "trials": {state.value: count for state, count in study.counts().items()},
        "imported": _imported(view),
        "best": None if best is None else trial_document(best),
        "searching": [searcher.to_json() for searcher in searching],
        "unfinished": [trial_document(trial) for trial in view.trials if not trial.state.is_ended],
    }


def _progress(study: "Study", view: "View") -> str:
    ended = sum(trial.state.is_ended and trial.is_counted for trial in view.trials)
    budget = view.standing.limits.trials
    of = "" if budget is None else f" of {budget}"
    imported = f", {_imported(view)} imported" if _imported(view) else ""
    return f"study '{study.name}': {ended}{of} trials ended; {counts_in_words(study.counts())}{imported}"


def _limits(view: "View") -> str:
    limits = view.standing.limits
    parts = [
        *([] if limits.trials is None else [counted(limits.trials, "trial")]),
        *([] if limits.timeout_s is None else [f"timeout {limits.timeout_s:g} s"]),
        *([] if limits.target_value is None else [f"target value {number(limits.target_value)}"]),
    ]
    return f"limits: {', '.join(parts) or 'none'}; searched for {view.standing.searched_s:.0f} s in all"


def _imported(view: "View") -> int:
    return sum(trial.is_imported for trial in view.trials)


def _stop_under_way(view: "View", searching: Sequence["Searcher"]) -> datetime | None:
    """When the end was asked for, while somebody still trains a trial from before; None: nobody does."""
    if view.standing.stopped_at is None:
        return None
    stopped_at = _moment(view.standing.stopped_at)
    running = {number for searcher in searching for number in searcher.trials}
    begun = [trial.started_at for trial in view.trials if trial.number in running and trial.started_at is not None]
    return stopped_at if any(started_at <= stopped_at for started_at in begun) else None


def _unfinished(view: "View", searching: Sequence["Searcher"]) -> Sequence[str]:
    trials = [trial for trial in view.trials if not trial.state.is_ended]
    owners = {trial: searcher.name for searcher in searching for trial in searcher.trials}
    rows = [
        (t.number, t.state.value, t.last_epoch, t.reports.get(t.last_epoch), t.losses, _owner(t, owners))
        for t in trials
    ]
    return table(("trial", "state", "epoch", "value", "losses", "owner"), rows) if rows else ()


def _owner(trial: Trial, owners: Mapping[int, str]) -> str | None:
    from automl.searchers import owner_in_words

    if trial.owner is None or trial.number in owners:
        return owners.get(trial.number)
    return f"{owner_in_words(trial.owner)} (gone)"


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
