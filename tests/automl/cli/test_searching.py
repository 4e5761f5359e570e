"""`automl search` and `automl resume` in one process: what they say, what they leave, and how they end."""

import fcntl
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest
import yaml

from studies.errors import StudyNotFoundError
from studies.storage import Storage
from studies.trial import Trial, TrialState
from tests.automl.cli.conftest import TOY, Shell
from tests.helpers.commands import Command, until
from tests.helpers.moody_toy import SPACE as MOODY


def database(folder: Path) -> str:
    return f"sqlite:///{folder}/automl-runs/studies.db"


def trials_of(folder: Path, study: str = "toy-digits") -> tuple[Trial, ...]:
    try:
        return Storage(database(folder)).open_study(study).trials()
    except StudyNotFoundError:
        return ()  # not begun yet


def test_search_says_the_best_and_what_to_do_next(shell: Shell) -> None:
    ended = shell.search_toy("--trials", 3)
    assert ended.code == 0, ended
    best = min(trials_of(shell.folder), key=lambda trial: trial.value or 0.0)
    assert ended.out.splitlines() == [
        "study 'toy-digits': all 3 trials ended; 3 complete",
        f"best trial: {best.number}, loss {best.value:.4g} on the validation split (epoch 3 of 3)",
        "on the test split, which the search never saw: loss 3",
        f"  x  {best.configuration['x']:.4g}",
        "report: automl-runs/artifacts/toy-digits/report.html",
        "more: automl resume toy-digits --trials 6",
    ]
    assert [path.name for path in shell.folder.iterdir()] == ["automl-runs"]
    assert (shell.folder / "automl-runs/artifacts/toy-digits/report.html").is_file()


def test_search_progress_is_dated_lines_where_there_is_no_terminal(shell: Shell) -> None:
    ended = shell.search_toy("--trials", 2)
    stamp = r"\[[IW] \d\d:\d\d:\d\d study=toy-digits( trial=\d)?\] "
    odd = [line for line in ended.err.splitlines() if not re.match(stamp, line)]
    assert all(line.endswith(" ...") for line in odd), "before the study is open, what is waited for"
    for trial in (0, 1):
        assert f"trial={trial}] started epochs=3" in ended.err
        assert re.search(rf"trial={trial}\] complete epoch=3 loss=\S+ ended={trial + 1}/2", ended.err)
    assert "\x1b" not in ended.err + ended.out


def test_search_again_goes_on_and_a_spent_budget_trains_nothing(shell: Shell) -> None:
    assert shell.search_toy("--trials", 2).code == 0
    again = shell.search_toy("--trials", 2)
    assert again.code == 0
    assert "started" not in again.err
    assert len(trials_of(shell.folder)) == 2
    more = shell("resume", "toy-digits", "--trials", 3)
    assert more.code == 0, more
    assert "trial=2] started" in more.err
    assert "trial=1] started" not in more.err
    assert [trial.state for trial in trials_of(shell.folder)] == [TrialState.COMPLETE] * 3


def test_search_quiet_says_only_how_it_ended(shell: Shell) -> None:
    ended = shell.search_toy("--trials", 2, "--quiet")
    assert ended.code == 0
    assert ended.err == ""
    assert ended.out.startswith("study 'toy-digits': all 2 trials ended; 2 complete\n")


def test_search_takes_a_configuration_file_and_flags_win(shell: Shell, tmp_path: Path) -> None:
    fields = {
        "space": "tests.helpers.toy", "metric": "loss", "executor": "inline", "sampler": "random", "pruner": "none",
        "epochs": 2, "trials": 7, "study": "from-file", "target-value": None, "data": {"source": "digits"},
    }  # fmt: skip
    file = tmp_path / "search.yaml"
    file.write_text(yaml.safe_dump(fields))
    ended = shell("search", "--config", file, "--trials", 2)
    assert ended.code == 0, ended
    trials = trials_of(shell.folder, "from-file")
    assert [list(trial.reports) for trial in trials] == [[1, 2]] * 2
    study = Storage(database(shell.folder)).open_study("from-file")
    assert (study.limits.trials, study.specification["epochs"], study.specification["sampler"]) == (2, 2, "random")


def test_search_with_an_odd_name_prints_a_command_that_works(shell: Shell) -> None:
    ended = shell.search_toy("--trials", 1, "--study", "Ana's 1st: nets/digits")
    assert ended.code == 0, ended
    _, _, command = ended.out.splitlines()[-1].partition("more: automl ")
    more = shell(*shlex.split(command))
    assert more.code == 0, more
    assert len(trials_of(shell.folder, "Ana's 1st: nets/digits")) == 2


def test_search_that_completes_nothing_ends_with_3_and_a_report(shell: Shell) -> None:
    ended = shell.search_toy("--trials", 4, "--pruner", "tests.helpers.pruners:StopAtOnce")
    assert ended.code == 3, ended
    assert "no completed trial" in ended.out
    assert "4 pruned" in ended.out
    assert (shell.folder / "automl-runs/artifacts/toy-digits/report.html").is_file()


def test_search_whose_trials_keep_failing_ends_with_1_and_the_cause(shell: Shell) -> None:
    study = Storage(database(shell.folder)).create_study("moody", direction="minimize")
    for _ in range(5):
        configuration = MOODY.validate({"x": 0.5, "mood": "raise_0", "epoch_s": 0.0})
        study.enqueue([configuration], MOODY.distributions())
    ended = shell.search_toy("--study", "moody", "--max-failures", 2, space="tests.helpers.moody_toy")
    assert ended.code == 1, ended
    last = ended.err[ended.err.index("\nautoml: ") :]
    assert "the last 2 trials failed (--max-failures 2)" in last
    assert "divides by zero" in last
    assert "automl show moody" in last
    assert "no completed trial; failures: 2 user_error" in ended.out
    assert "report: " in ended.out
    assert "Traceback" not in ended.err
    assert sum(trial.state is TrialState.FAILED for trial in study.trials()) == 2


def test_search_remembers_where_the_study_and_its_artifacts_lie(shell: Shell) -> None:
    shell.search_toy("--trials", 1)
    remembered = Path(shell.environment["XDG_STATE_HOME"], "automl", "recent-studies.json")
    folder = f"{shell.folder}/automl-runs"
    assert json.loads(remembered.read_text()) == [
        {"name": "toy-digits", "storage": f"sqlite:///{folder}/studies.db", "artifacts": f"{folder}/artifacts"}
    ]


def test_search_without_a_home_that_can_be_written_works(shell: Shell) -> None:
    ended = shell("search", "--space", "tests.helpers.toy", *TOY, "--trials", "1", XDG_STATE_HOME="/proc/automl")
    assert ended.code == 0, ended


def slow_search(study: str) -> tuple[str, ...]:
    return ("search", "--space", "tests.helpers.slow_toy", "--study", study, *TOY, "--trials", "1", "--epochs", "5")


def is_training(folder: Path, study: str) -> bool:
    return any(trial.last_epoch >= 1 for trial in trials_of(folder, study))


def check_goes_on(shell: Shell, study: str) -> None:
    assert [trial.state for trial in trials_of(shell.folder, study)] == [TrialState.PAUSED]
    resumed = shell("resume", study)
    assert resumed.code == 0, resumed
    (trial,) = trials_of(shell.folder, study)
    assert (trial.state, trial.attempt, list(trial.reports)) == (TrialState.COMPLETE, 2, [1, 2, 3, 4, 5])


@pytest.mark.chaos
@pytest.mark.slow
@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_search_interrupted_pauses_and_goes_on(shell: Shell, number: signal.Signals, code: int) -> None:
    with Command(*slow_search("slow"), folder=shell.folder, environment=shell.environment) as command:
        until(lambda: is_training(shell.folder, "slow"), 60.0, "the first epoch")
        command.send(number)
        ended = command.ended(timeout_s=10.0)
    assert ended.code == code, ended
    assert f"interrupted by {number.name}" in ended.out
    assert "go on with: automl resume slow" in ended.out
    check_goes_on(shell, "slow")


@pytest.mark.chaos
@pytest.mark.slow
def test_search_interrupted_while_it_reads_the_data_leaves_nothing(shell: Shell) -> None:
    arguments = ("search", "--space", "tests.helpers.reading_toy", "--metric", "loss", "--executor", "inline")
    with Command(*arguments, folder=shell.folder, environment=shell.environment) as command:
        until(lambda: "reading the data" in command.err, 60.0, "the reading of the data")
        command.send(signal.SIGINT)
        ended = command.ended(timeout_s=10.0)
    assert ended.code == 130, ended
    assert "Traceback" not in ended.err
    assert not any(shell.folder.iterdir())


@pytest.mark.chaos
def test_search_on_a_terminal_shows_a_live_view_and_ctrl_c_ends_it(shell: Shell) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "automl", *slow_search("seen")],
        cwd=shell.folder,
        env={**shell.environment, "TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    ) as process:
        os.close(theirs)
        until(lambda: is_training(shell.folder, "seen"), 60.0, "the first epoch")
        os.write(ours, b"\x03")
        seen = read_to_end(ours)
        code = process.wait(10.0)
    os.close(ours)
    assert code == 130, seen
    assert "\x1b[" in seen, "the view moves the cursor"
    assert "seen" in seen and "loss" in seen
    assert "Traceback" not in seen
    assert "go on with: automl resume seen" in seen
    assert seen.count("\x1b[?25l") <= seen.count("\x1b[?25h"), "a cursor that was hidden is shown again"
    check_goes_on(shell, "seen")


def read_to_end(terminal: int) -> str:
    parts = []
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # how Linux tells that the other side of a terminal is closed
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode(errors="replace")  # Ctrl-C empties the terminal in the middle of a character
