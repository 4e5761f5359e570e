"""Two ways to show a search: a calm table that is redrawn on a terminal, one dated line per change elsewhere."""

import time
from collections.abc import Callable
from typing import Literal, Protocol

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from automl.events import EpochReported, Event, NewBest, TrialEnded
from automl.progress.lines import event_line, quoted, stamp
from automl.progress.state import ProgressState
from automl.progress.table import render
from studies.figures.words import seconds_in_words
from studies.trial import TrialState

__all__ = ["LiveProgress", "PlainProgress", "ProgressView", "progress_for"]

_SILENCE_S = 30.0  # the plain view reports an epoch when it has said nothing for so long
_REFRESHES_PER_S = 4


class ProgressView(Protocol):
    """Shows a search to a person."""

    def start(self, state: ProgressState) -> None:
        """The search begins."""

    def update(self, state: ProgressState, event: Event) -> None:
        """Something has changed; `state` is the one after `event`."""

    def stop(self, state: ProgressState) -> None:
        """The search is over, whatever the reason."""


class LiveProgress:
    """A table that is redrawn in place; new bests and failures stay above it as lines."""

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Draw on `console`, which is a terminal; `clock` is the one that the states were made with."""
        self._console = console
        self._clock = clock
        self._state: ProgressState | None = None
        self._live = Live(
            console=console, refresh_per_second=_REFRESHES_PER_S, transient=True, get_renderable=self._render
        )

    def start(self, state: ProgressState) -> None:
        """Begin to draw."""
        self._state = state
        self._live.start(refresh=True)

    def update(self, state: ProgressState, event: Event) -> None:
        """Show the new state; keep a line for what must not be missed."""
        self._state = state
        is_failure = isinstance(event, TrialEnded) and event.state is TrialState.FAILED
        if is_failure or isinstance(event, NewBest):
            self._console.print(Text(event_line(state, event)), soft_wrap=True)

    def stop(self, state: ProgressState) -> None:
        """Take the table away; the lines stay."""
        self._state = state
        self._live.stop()

    def _render(self) -> RenderableType:
        if self._state is None:
            return Text()
        return render(self._state, self._clock(), self._console.width, self._console.height)


class PlainProgress:
    """One dated line per change of a trial's state, for files, pipes and logs."""

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Write to `console`; `clock` tells how long it has been silent."""
        self._console = console
        self._clock = clock
        self._last_line_s = clock()

    def start(self, state: ProgressState) -> None:
        """Say what is searched."""
        goal = quoted(f"{state.direction} {state.metric}")
        self._write(stamp("I", state.study), f"search objective={goal} trials={state.total} ended={state.ended}")

    def update(self, state: ProgressState, event: Event) -> None:
        """Write a line; one for an epoch only as a sign of life after a long silence."""
        if isinstance(event, EpochReported) and self._clock() - self._last_line_s < _SILENCE_S:
            return
        self._write(event_line(state, event))

    def stop(self, state: ProgressState) -> None:
        """Say how many trials have ended."""
        spent = seconds_in_words(self._clock() - state.started_s)
        self._write(stamp("I", state.study), f"end ended={state.ended}/{state.total} spent={quoted(spent)}")

    def _write(self, *parts: str) -> None:
        self._last_line_s = self._clock()
        self._console.print(Text(" ".join(parts)), soft_wrap=True)


def progress_for(
    console: Console,
    mode: Literal["auto", "live", "plain"] = "auto",
    *,
    clock: Callable[[], float] = time.monotonic,
) -> ProgressView:
    """Return the view for a console; `auto` is live where the console can redraw, plain elsewhere."""
    can_redraw = console.is_terminal and not console.is_dumb_terminal
    if mode == "live" or (mode == "auto" and can_redraw):
        return LiveProgress(console, clock=clock)
    return PlainProgress(console, clock=clock)
