"""Follows a search: turns its events into states and hands them to a view."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.text import Text

from automl.events import Event, TrialEnded
from automl.observer import Observer
from automl.progress.state import ProgressState
from automl.progress.views import ProgressView, progress_for
from studies.trial import Trial

if TYPE_CHECKING:
    from automl.spec import SearchSpec
    from studies.study import Study

__all__ = ["ProgressObserver"]


class ProgressObserver(Observer):
    """Follows a search and shows it."""

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        view: ProgressView | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Choose the view by the stream.

        Args:
            stream: where to write; None: standard error.
            view: how to show it; None: live on a terminal, plain lines elsewhere.
            clock: monotonic seconds.
        """
        self._console = Console(file=stream or sys.stderr)
        self._view = view or progress_for(self._console, clock=clock)
        self._clock = clock
        self._study: Study | None = None
        self._state: ProgressState | None = None

    def prepare(self, step: str) -> None:
        """Say what is being waited for."""
        self._console.print(Text(f"{step} ..."), soft_wrap=True)

    def begin(self, spec: "SearchSpec", study: "Study", slots: int) -> None:
        """Take up the study where it stands."""
        trials = study.trials()
        best = study.best_trial()
        self._study = study
        self._state = ProgressState(
            study=study.name,
            metric=spec.metric,
            direction=study.direction,
            total=spec.trials,
            slots=slots,
            started_s=self._clock(),
            counts=Counter(trial.state for trial in trials if not trial.is_imported),
            best=None if best is None or best.value is None else (best.number, best.value, best.last_epoch),
            durations_s=_durations_s(trials),
        )
        self._view.start(self._state)

    def notify(self, event: Event) -> None:
        """Show an event; counts and total are the study's, since other machines may work on it and raise its limit."""
        if self._state is None or self._study is None:
            return
        self._state = self._state.after(event, self._clock())
        if isinstance(event, TrialEnded):
            total = self._study.limits.trials or self._state.total
            self._state = replace(self._state, counts=self._study.counts(), total=total)
        self._view.update(self._state, event)

    def end(self) -> None:
        """Stop showing."""
        if self._state is not None:
            self._view.stop(self._state)
            self._state = None


def _durations_s(trials: Iterable[Trial]) -> tuple[float, ...]:
    """Trials of several attempts are left out: their time from start to end holds the pauses between."""
    return tuple(
        (trial.ended_at - trial.started_at).total_seconds()
        for trial in trials
        if trial.state.is_ended
        and trial.is_counted
        and trial.attempt <= 1
        and trial.started_at is not None
        and trial.ended_at is not None
    )
