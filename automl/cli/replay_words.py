"""What `automl simulate` says of rules that have judged a finished study anew, as lines and as plain values."""

from collections.abc import Sequence
from typing import Any

from automl.cli.tables import number, table
from automl.simulation.replay import Record, Replayed
from studies.figures.words import counted, seconds_in_words

__all__ = ["replay_facts", "replay_lines"]

_RULES = ("rule", "epochs", "saved", "work", "saved", "best", "lost", "unknown")


def replay_lines(name: str, metric: str, record: Record, found: Sequence[tuple[str, Replayed]]) -> Sequence[str]:
    """What each rule would have saved and lost."""
    cut = sum(map(record.is_cut_short, range(len(record.trials))))
    lines = [
        f"study '{name}': {counted(len(record.trials), 'trial')}, {counted(record.trained, 'epoch')} trained, "
        f"{counted(record.epochs, 'epoch')} in full; {record.direction} {metric}"
    ]
    if cut:
        lines.append(
            f"note: {counted(cut, 'training')} of the study ended early; what would have come then is not known, and "
            "no rule is credited with it"
        )
    if not record.is_timed:
        lines.append("note: how long trainings took is not known; each epoch counts as a second")
    if record.counts_reports:
        lines.append("note: not every epoch was reported; epochs are counts of reports here")
    lines.append("note: a sampler that sees other results would also propose other configurations")
    best = "none complete" if record.best is None else f"{number(record.best.value)} (trial {record.best.number})"
    as_it_was = ["as it was", record.trained, "", seconds_in_words(record.worked_s), "", best, "", ""]
    rows = [as_it_was, *(_rule(rule, one, record) for rule, one in found)]
    return [*lines, "", *table(_RULES, rows), *_endings(record, found)]


def replay_facts(name: str, metric: str, record: Record, found: Sequence[tuple[str, Replayed]]) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "study": name,
        "metric": metric,
        "direction": record.direction,
        "epochs": record.epochs,
        "trials": len(record.trials),
        "epochs_trained": record.trained,
        "seconds_worked": record.worked_s,
        "is_timed": record.is_timed,
        "best_trial": None if record.best is None else record.best.number,
        "best": None if record.best is None else record.best.value,
        "cut_short": sum(map(record.is_cut_short, range(len(record.trials)))),
        "rules": [
            {
                "pruner": rule,
                "epochs_trained": one.epochs,
                "epochs_saved": record.trained - one.epochs,
                "seconds_worked": one.worked_s,
                "seconds_saved": record.worked_s - one.worked_s,
                "seconds_in_all": one.course.seconds,
                "best_trial": None if one.best is None else one.best.number,
                "best": None if one.best is None else one.best.value,
                "lost": one.lost,
                "ended_best_at": one.ended_best,
                "unknown": one.unknown,
            }
            for rule, one in found
        ],
    }


def _rule(name: str, one: Replayed, record: Record) -> Sequence[object]:
    return (
        name,
        one.epochs,
        _saved(str(record.trained - one.epochs), record.trained - one.epochs, record.trained),
        seconds_in_words(one.worked_s),
        _saved(seconds_in_words(record.worked_s - one.worked_s), record.worked_s - one.worked_s, record.worked_s),
        "none complete" if one.best is None else f"{number(one.best.value)} (trial {one.best.number})",
        "-" if one.lost is None else number(one.lost),
        one.unknown,
    )


def _saved(amount: str, saved: float, whole: float) -> str:
    return f"{amount} ({100.0 * saved / whole:.0f} %)" if whole else amount


def _endings(record: Record, found: Sequence[tuple[str, Replayed]]) -> Sequence[str]:
    """Which rules would have lost the best trial, and which would have gone on where nothing is known."""
    lines = []
    for rule, one in found:
        if record.best is not None and one.ended_best is not None:
            lines.append(f"{rule}: trial {record.best.number}, the best, would have ended at epoch {one.ended_best}")
        if one.unknown:
            lines.append(
                f"{rule}: would have gone on with {counted(one.unknown, 'training')} where the study ended them; what "
                "they would have cost and brought is not known"
            )
    return ["", *lines] if lines else lines
