"""Events as dated lines: `[I 12:04:31 study=cifar trial=17] pruned epoch=9 accuracy=0.612 ended=12/30`."""

import json
from datetime import datetime

from automl.events import EpochReported, Event, NewBest, SlotsChanged, TrialEnded, TrialRefused, TrialStarted
from automl.progress.state import ProgressState
from studies.trial import TrialState

__all__ = ["event_line", "quoted", "short", "stamp"]


def event_line(state: ProgressState, event: Event) -> str:
    """Return an event as a line: level, time, study and trial, the event, then key=value."""
    match event:
        case TrialStarted():
            what = f"started epochs={event.epochs}"
            if event.attempt > 1:
                what = f"resumed epoch={event.epoch} epochs={event.epochs} attempt={event.attempt}"
        case EpochReported():
            what = f"running epoch={event.epoch} {state.metric}={short(event.value)}"
        case TrialEnded():
            what = _ending(state, event)
        case TrialRefused():
            what = f"infeasible reason={quoted(event.reason)}"
        case NewBest():
            what = f"best epoch={event.epoch} {state.metric}={short(event.value)}"
        case SlotsChanged():
            return f"{stamp('I', state.study)} slots={event.slots}"
    is_failure = isinstance(event, TrialEnded) and event.state is TrialState.FAILED
    return f"{stamp('W' if is_failure else 'I', state.study, event.number)} {what}"


def _ending(state: ProgressState, event: TrialEnded) -> str:
    parts = [event.state.value, f"epoch={event.epoch}"]
    if event.value is not None:
        parts.append(f"{state.metric}={short(event.value)}")
    if event.cause is not None:
        parts.append(f"cause={event.cause}")
    if event.message.strip():
        parts.append(f"message={quoted(event.message.strip().splitlines()[0])}")
    return " ".join([*parts, f"ended={state.ended}/{state.total}"])


def stamp(level: str, study: str, number: int | None = None) -> str:
    """Return the start of a line: level, local time, study and trial."""
    trial = "" if number is None else f" trial={number}"
    return f"[{level} {datetime.now():%H:%M:%S} study={quoted(study)}{trial}]"


def quoted(text: str) -> str:
    """Return a text that stays one word of one line: in quotes when it has blanks or odd characters."""
    is_word = text.replace("-", "").replace("_", "").replace(".", "").isalnum()
    return text if is_word else json.dumps(text, ensure_ascii=False)


def short(value: float) -> str:
    """Return a value with four significant digits."""
    return f"{value:.4g}"
