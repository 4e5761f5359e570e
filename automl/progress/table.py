"""The live table: what a search looks like at one moment on a terminal."""

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from automl.progress.lines import short
from automl.progress.state import ProgressState
from studies.figures.words import seconds_in_words
from studies.trial import TrialState

__all__ = ["render"]

_LINES_BESIDE_TRIALS = 9
_WIDE = 60  # columns from which the times stand beside the name
_BAR_WIDTH = 12


def render(state: ProgressState, now_s: float, width: int = 80, height: int = 24) -> RenderableType:
    """Return a state as a table that fits a terminal of that size, readable without colour."""
    left = state.time_left_s(now_s)
    times = f"{seconds_in_words(now_s - state.started_s)} so far"
    if left is not None and left >= 1:
        times += f", about {seconds_in_words(left)} left"
    goal = Text.assemble((state.study, "bold"), f"  {state.direction} {state.metric}")
    head = Table.grid(expand=True, padding=(0, 1))
    head.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    if width >= _WIDE:
        head.add_column(justify="right", no_wrap=True)
        head.add_row(goal, Text(times, style="dim"))
    else:
        head.add_row(goal)
        head.add_row(Text(times, style="dim"))
    progress = Table.grid(expand=True, padding=(0, 1))
    progress.add_column(ratio=1)
    progress.add_column(justify="right", no_wrap=True)
    progress.add_row(
        ProgressBar(
            total=state.total,
            completed=min(state.ended, state.total),
            complete_style="cyan",
            finished_style="cyan",
        ),
        Text(f"{state.ended} of {state.total} trials ended"),
    )
    return Group(head, progress, _counts_line(state), _best_line(state), Text(), *_running_rows(state, height))


def _running_rows(state: ProgressState, height: int) -> Iterable[RenderableType]:
    trials = sorted(state.running.values(), key=lambda trial: trial.number)
    shown = trials[: max(1, height - _LINES_BESIDE_TRIALS)]
    if not shown:
        return
    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="dim")
    for name in ("trial", "epoch", state.metric, "attempt"):
        table.add_column(Text(name), justify="right", no_wrap=True, overflow="ellipsis")
    table.columns[1].justify = "left"
    for trial in shown:
        done = round(_BAR_WIDTH * min(1.0, trial.epoch / max(1, trial.epochs)))
        bar = f"{'━' * done}{'·' * (_BAR_WIDTH - done)} {trial.epoch}/{trial.epochs}"
        value = "" if trial.value is None else short(trial.value)
        table.add_row(str(trial.number), bar, value, str(trial.attempt) if trial.attempt > 1 else "")
    yield table
    if len(trials) > len(shown):
        yield Text(f"and {len(trials) - len(shown)} more", style="dim")


def _counts_line(state: ProgressState) -> Text:
    words = [f"{count} {kind.value}" for kind in TrialState if kind.is_ended and (count := state.counts.get(kind))]
    return Text(" · ".join(words) or "no trial has ended yet")


def _best_line(state: ProgressState) -> Text:
    if state.best is None:
        return Text(f"best {state.metric}: none yet")
    number, value, epoch = state.best
    return Text.assemble(f"best {state.metric}: ", (short(value), "bold"), f"  trial {number}, epoch {epoch}")
