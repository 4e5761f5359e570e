import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fcntl import ioctl
from itertools import pairwise
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from automl.events import EpochReported, Event, NewBest, TrialEnded, TrialRefused, TrialStarted
from automl.progress import (
    LiveProgress,
    PlainProgress,
    ProgressObserver,
    ProgressState,
    ProgressView,
    progress_for,
    time_left_s,
)
from automl.progress.table import render
from automl.spec import SearchSpec
from studies.storage import Storage
from studies.trial import TrialState

EMPTY = ProgressState(study="digits", metric="accuracy", direction="maximize", total=30, slots=2, started_s=0.0)
LONG_NAME = "a study with a name that is much too long for a terminal of eighty columns, by far"


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Recorder:
    """A view that remembers what it was shown."""

    def __init__(self) -> None:
        self.states: list[ProgressState] = []
        self.is_stopped = False

    def start(self, state: ProgressState) -> None:
        self.states.append(state)

    def update(self, state: ProgressState, event: Event) -> None:
        self.states.append(state)

    def stop(self, state: ProgressState) -> None:
        self.is_stopped = True


def started(number: int, attempt: int = 1, epoch: int = 0) -> TrialStarted:
    return TrialStarted(number=number, attempt=attempt, epoch=epoch, epochs=8)


def ended(number: int, state: TrialState = TrialState.COMPLETE, **fields: object) -> TrialEnded:
    return TrialEnded(number=number, state=state, epoch=8, value=0.9, **fields)  # type: ignore[arg-type]  # by name


def after(*events: Event, state: ProgressState = EMPTY, step_s: float = 1.0) -> ProgressState:
    for index, event in enumerate(events, start=1):
        state = state.after(event, index * step_s)
    return state


def shown(state: ProgressState, now_s: float = 80.0, width: int = 80, height: int = 24, **options: bool) -> str:
    console = Console(file=io.StringIO(), width=width, height=height, **options)  # type: ignore[arg-type]  # flags only
    console.print(render(state, now_s, width, height))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def written(clock: Clock, *events: tuple[float, Event], state: ProgressState = EMPTY) -> list[str]:
    stream = io.StringIO()
    view = PlainProgress(Console(file=stream), clock=clock)
    view.start(state)
    for at_s, event in events:
        clock.now_s = at_s
        state = state.after(event, at_s)
        view.update(state, event)
    view.stop(state)
    return stream.getvalue().splitlines()


# -- state ---------------------------------------------------------------------------------------------------------


def test_state_follows_a_trial_from_start_to_end() -> None:
    state = after(started(3), EpochReported(number=3, epoch=2, value=0.5))
    assert state.running[3].epoch == 2
    assert state.running[3].value == 0.5
    state = after(ended(3), NewBest(number=3, value=0.9, epoch=7), state=state, step_s=10.0)
    assert not state.running
    assert state.counts == {TrialState.COMPLETE: 1}
    assert state.best == (3, 0.9, 7)
    assert state.durations_s == (9.0,)


def test_paused_and_refused_trials_do_not_use_up_the_budget() -> None:
    state = after(started(0), ended(0, TrialState.PAUSED), TrialRefused(number=1, reason="no path"))
    assert state.ended == 0
    assert state.durations_s == ()
    assert after(ended(2, TrialState.PRUNED), ended(3, TrialState.FAILED), state=state).ended == 2


def test_report_of_an_unknown_trial_changes_nothing() -> None:
    assert after(EpochReported(number=9, epoch=1, value=0.1)) == EMPTY


# -- time left -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("durations", "elapsed", "waiting", "slots", "expected"),
    [
        ((), (), 0, 2, 0.0),
        ((), (), 5, 2, None),
        ((), (3.0,), 0, 2, None),
        ((10.0,), (), 4, 2, 20.0),
        ((10.0,), (4.0, 4.0), 0, 2, 6.0),
        ((10.0,), (4.0, 4.0), 2, 2, 16.0),
        ((2.0, 10.0), (5.0,), 0, 1, 5.0),  # it was not stopped at 2 s, so it goes the whole way
        ((2.0, 10.0), (60.0,), 0, 1, 0.0),
        ((10.0,), (), 1, 8, 10.0),  # more slots than trials do not make it quicker
        ((10.0,), (1.0,), 0, 8, 9.0),
    ],
)
def test_time_left(
    durations: tuple[float, ...], elapsed: tuple[float, ...], waiting: int, slots: int, expected: float | None
) -> None:
    assert time_left_s(durations, elapsed, waiting, slots) == expected


def test_time_left_does_not_grow_while_a_trial_runs_as_long_as_the_others_did() -> None:
    left = [time_left_s((10.0, 10.0), (float(elapsed),), 3, 1) for elapsed in range(11)]
    assert all(later is not None and earlier is not None and later < earlier for earlier, later in pairwise(left))


# -- live view -----------------------------------------------------------------------------------------------------


def busy_state(running: int = 4) -> ProgressState:
    events = [started(number, attempt=1 + number % 2, epoch=number % 8) for number in range(12, 12 + running)]
    state = after(*events, EpochReported(number=12, epoch=5, value=0.81234), NewBest(number=9, value=0.97221, epoch=7))
    counts = {TrialState.COMPLETE: 7, TrialState.PRUNED: 4, TrialState.FAILED: 1, TrialState.INFEASIBLE: 2}
    return ProgressState(
        study=LONG_NAME,
        metric="accuracy",
        direction="maximize",
        total=30,
        slots=4,
        started_s=0.0,
        counts=counts,
        best=state.best,
        running=state.running,
        durations_s=(10.0, 12.0, 300.0),
    )


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (40, 12), (20, 8)])
def test_live_table_fits_the_terminal(width: int, height: int) -> None:
    lines = shown(busy_state(running=50), width=width, height=height).splitlines()
    assert max(cell_len(line) for line in lines) <= width
    if width >= 80:
        assert len(lines) < height
        assert lines[-1].startswith("and ")


def test_live_table_without_colour_says_everything_in_words() -> None:
    text = shown(busy_state(), no_color=True)
    assert "\x1b" not in text
    for words in (
        "12 of 30 trials ended",
        "7 complete · 4 pruned · 1 failed · 2 infeasible",
        "best accuracy: 0.9722  trial 9, epoch 7",
        "5/8",
        "0.8123",
        "1 min 20 s so far, about",
    ):
        assert words in text


def test_live_table_of_an_empty_study_is_readable() -> None:
    text = shown(EMPTY)
    assert "no trial has ended yet" in text
    assert "best accuracy: none yet" in text


CHILD = """
import sys
from rich.console import Console
from automl.events import EpochReported, NewBest, TrialEnded, TrialStarted
from automl.progress import LiveProgress, ProgressState, progress_for
from studies.trial import TrialState

console = Console(file=sys.stderr)
view = progress_for(console)
assert isinstance(view, LiveProgress)
now = 0.0
state = ProgressState(study="digits " * 20, metric="accuracy", direction="maximize", total=9, slots=3, started_s=0.0)
view = LiveProgress(console, clock=lambda: now)
view.start(state)
for number in range(9):
    for event in (
        TrialStarted(number=number, attempt=1, epoch=0, epochs=2),
        EpochReported(number=number, epoch=1, value=0.5),
        TrialEnded(number=number, state=TrialState.FAILED if number == 4 else TrialState.COMPLETE, epoch=2,
                   value=0.5, cause="oom" if number == 4 else None, message="out of memory" if number == 4 else ""),
        NewBest(number=number, value=0.5 + number / 100, epoch=2),
    ):
        now += 1.0
        state = state.after(event, now)
        view.update(state, event)
        view._live.refresh()
view.stop(state)
"""


def run_in_terminal(columns: int, lines: int, **environment: str) -> str:
    """Run the child with standard error on a pseudo-terminal of that size; return all that it drew."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    settings = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")}
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**settings, "TERM": "xterm-256color", **environment},
        cwd=Path(__file__).parents[2],
    )
    os.close(theirs)
    drawn = b"".join(_read_all(ours))
    os.close(ours)
    assert child.wait(timeout=30) == 0, drawn.decode()
    return drawn.decode()


def _read_all(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # Linux says EIO when the other side has closed
            return
        if not chunk:
            return
        yield chunk


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (120, 40)])
def test_live_view_in_a_terminal_stays_within_it_and_leaves_bests_and_failures(columns: int, lines: int) -> None:
    drawn = run_in_terminal(columns, lines)
    frames = re.split(r"\x1b\[2K", drawn)
    plain = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", frame) for frame in frames]
    table_lines = [line for frame in plain for line in frame.splitlines() if "study=" not in line]
    assert max(map(cell_len, table_lines)) <= columns
    assert max(int(up) for up in re.findall(r"\x1b\[(\d+)A", drawn) or ["1"]) < lines
    assert len(re.findall(r"trial=\d\] best epoch=2 accuracy=", drawn)) == 9
    assert len(re.findall(r"trial=4\] failed epoch=2 accuracy=0.5 cause=oom message=\"out of memory\"", drawn)) == 1
    assert drawn.count("\x1b[?25l") == drawn.count("\x1b[?25h") == 1  # the cursor comes back


def test_live_view_obeys_no_color() -> None:
    drawn = run_in_terminal(80, 24, NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*(?:3[0-7]|9[0-7]|38)[;m]", drawn)
    assert "trials ended" in drawn


# -- plain view ----------------------------------------------------------------------------------------------------


def test_plain_view_writes_one_dated_line_per_change() -> None:
    lines = written(
        Clock(),
        (1, started(17)),
        (2, EpochReported(number=17, epoch=1, value=0.5)),
        (9, ended(17, TrialState.PRUNED)),
        (10, TrialRefused(number=18, reason="no path from input to output")),
        (11, started(16, attempt=2, epoch=3)),
        (12, ended(16)),
        (12, NewBest(number=16, value=0.97221, epoch=7)),
    )
    assert all(re.fullmatch(r"\[I \d\d:\d\d:\d\d study=digits( trial=\d+)?\] .+", line) for line in lines)
    assert [line.split("] ", 1)[1] for line in lines] == [
        'search objective="maximize accuracy" trials=30 ended=0',
        "started epochs=8",
        "pruned epoch=8 accuracy=0.9 ended=1/30",
        'infeasible reason="no path from input to output"',
        "resumed epoch=3 epochs=8 attempt=2",
        "complete epoch=8 accuracy=0.9 ended=2/30",
        "best epoch=7 accuracy=0.9722",
        'end ended=2/30 spent="12 s"',
    ]


def test_plain_view_warns_of_a_failure_in_one_line() -> None:
    lines = written(Clock(), (1, ended(4, TrialState.FAILED, cause="oom", message="\nno memory\nfor [red]it[/red]")))
    assert lines[1].startswith("[W ")
    assert lines[1].endswith('failed epoch=8 accuracy=0.9 cause=oom message="no memory" ended=1/30')


@pytest.mark.parametrize("message", ["", "  \n ", "[bold]x", "\u001b[31mred"])
def test_plain_view_takes_any_message(message: str) -> None:
    lines = written(Clock(), (1, ended(4, TrialState.FAILED, cause="oom", message=message)))
    assert len(lines) == 3
    assert "\x1b" not in lines[1]


def test_plain_view_gives_a_sign_of_life_after_a_long_silence() -> None:
    epochs = [(at_s, EpochReported(number=0, epoch=n, value=0.5)) for n, at_s in enumerate((10.0, 40.0, 60.0, 75.0), 1)]
    lines = written(Clock(), (1.0, started(0)), *epochs)
    assert [line.split("] ")[1] for line in lines[2:-1]] == [
        "running epoch=2 accuracy=0.5",
        "running epoch=4 accuracy=0.5",
    ]


def test_plain_view_does_not_wrap_long_lines() -> None:
    lines = written(Clock(), (1, TrialRefused(number=0, reason="x" * 500)))
    assert len(lines) == 3


# -- choice and observer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("is_terminal", "mode", "expected"),
    [
        (True, "auto", LiveProgress),
        (False, "auto", PlainProgress),
        (True, "plain", PlainProgress),
        (False, "live", LiveProgress),
    ],
)
def test_view_is_chosen_by_console_and_mode(is_terminal: bool, mode: str, expected: type[ProgressView]) -> None:
    console = Console(file=io.StringIO(), force_terminal=is_terminal, _environ={"TERM": "xterm"})
    assert isinstance(progress_for(console, mode), expected)  # type: ignore[arg-type]  # the table's words


def test_dumb_terminal_gets_lines() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    assert isinstance(progress_for(console), PlainProgress)


def test_observer_takes_up_a_study_where_it_stands_and_follows_it(tmp_path: Path) -> None:
    from optuna.distributions import FloatDistribution

    distributions = {"x": FloatDistribution(0.0, 1.0)}
    study = Storage(f"sqlite:///{tmp_path / 's.db'}").create_study("s", direction="maximize", specification={})
    spec = SearchSpec.from_mapping({"space": "nas_small", "trials": 5}, "a test")
    for number in range(2):
        lease = study.create_trial(
            number=number, configuration={"x": 0.5}, distributions=distributions, owner="me", ttl_s=60.0
        )
        study.report(lease, epoch=1, value=0.5 + number / 10, metrics={}, checkpoint=None)
        study.tell(lease, TrialState.COMPLETE, value=0.5 + number / 10)
    view, clock = Recorder(), Clock()
    observer = ProgressObserver(io.StringIO(), view=view, clock=clock)
    observer.begin(spec, study, 2)
    assert view.states[-1].ended == 2
    assert view.states[-1].best == (1, 0.6, 1)
    assert len(view.states[-1].durations_s) == 2

    lease = study.create_trial(number=2, configuration={"x": 0.5}, distributions=distributions, owner="me", ttl_s=60.0)
    observer.notify(started(2))
    study.tell(lease, TrialState.FAILED, cause="oom")
    clock.now_s = 7.0
    observer.notify(ended(2, TrialState.FAILED, cause="oom"))
    assert view.states[-1].ended == 3
    assert view.states[-1].counts[TrialState.FAILED] == 1
    assert view.states[-1].durations_s[-1] == 7.0
    observer.end()
    assert view.is_stopped


def test_observer_that_never_began_can_end() -> None:
    view = Recorder()
    observer = ProgressObserver(io.StringIO(), view=view)
    observer.notify(started(0))
    observer.end()
    assert not view.states
    assert not view.is_stopped


def test_durations_of_trials_with_several_attempts_are_not_learned_from() -> None:
    from automl.progress.observer import _durations_s
    from studies.trial import Trial

    start = datetime(2026, 1, 1, tzinfo=UTC)
    trials = [
        Trial(
            id=n, number=n, state=TrialState.COMPLETE, configuration={}, attempt=n, value=1.0,
            started_at=start, ended_at=start + timedelta(seconds=10 * n),
        )
        for n in (1, 2)
    ]  # fmt: skip
    assert _durations_s(trials) == (10.0,)
