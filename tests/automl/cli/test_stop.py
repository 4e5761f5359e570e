"""`automl stop`, and the end of a search on every machine."""

import json
import re
from datetime import datetime

import pytest
from optuna.distributions import FloatDistribution

from studies.errors import StudyNotFoundError
from studies.identity import process_identity
from studies.standing import Limits
from studies.storage import Storage
from studies.trial import Trial, TrialState
from tests.automl.cli.conftest import TOY, Shell
from tests.helpers.commands import until
from tests.helpers.searches import ForkedSearch

SEARCH = ("search", "--space", "tests.helpers.slow_toy", "--study", "slow", *TOY, "--trials", "4", "--epochs", "60")


def trials(shell: Shell) -> tuple[Trial, ...]:
    try:
        return Storage(f"sqlite:///{shell.folder}/automl-runs/studies.db").open_study("slow").trials()
    except StudyNotFoundError:
        return ()  # not begun yet


def owners(shell: Shell) -> set[str | None]:
    return {trial.owner for trial in trials(shell) if trial.state is TrialState.RUNNING}


@pytest.mark.chaos
@pytest.mark.slow
def test_stop_ends_two_processes_after_their_epochs_and_resume_goes_on_at_once(shell: Shell) -> None:
    with (
        ForkedSearch(*SEARCH, folder=shell.folder, environment=shell.environment) as one,
        ForkedSearch(*SEARCH, folder=shell.folder, environment=shell.environment) as other,
    ):
        until(lambda: len(owners(shell)) == 2, 60.0, "two processes that train")
        pids = {one.pid, other.pid}
        standing = json.loads(shell("status", "slow", "--json").out)
        assert {searcher["pid"] for searcher in standing["searching"]} == pids
        assert standing["stop_requested_at"] is None
        stopped = shell("stop", "slow")
        assert stopped.code == 0, stopped
        assert stopped.out.startswith("study 'slow': 2 processes will end after the running epoch\n")
        assert {int(pid) for pid in re.findall(r"pid (\d+): trial \d", stopped.out)} == pids
        assert stopped.out.endswith("go on with: automl resume slow\n")
        for command in (one, other):
            ended = command.ended(timeout_s=20.0)
            assert ended.code == 3, ended
            assert "study 'slow': stopped by `automl stop`; 2 paused" in ended.out or "1 running" in ended.out
            assert "go on with: automl resume slow" in ended.out
    assert [trial.state for trial in trials(shell)] == [TrialState.PAUSED] * 2
    assert all(trial.last_epoch >= 1 and trial.losses == 0 for trial in trials(shell))
    with ForkedSearch("resume", "slow", folder=shell.folder, environment=shell.environment) as resumed:
        until(lambda: owners(shell), 30.0, "the search to go on")
        assert "stopped by" not in resumed.err
        assert shell("stop", "slow").code == 0
        assert resumed.ended(timeout_s=20.0).code == 3
    assert max(trial.attempt for trial in trials(shell)) == 2


def test_stop_of_a_study_that_nobody_searches_is_no_error_and_no_hindrance(shell: Shell) -> None:
    assert shell.search_toy("--trials", 1).code == 0
    ended = shell("stop", "toy-digits")
    assert (ended.code, ended.out) == (0, "nobody searches study 'toy-digits'\n")
    more = shell("resume", "toy-digits", "--trials", "2")
    assert more.code == 0, more
    assert "all 2 trials ended" in more.out
    assert "stop requested" not in shell("status", "toy-digits").out


def test_status_says_who_works_on_what_and_that_the_end_was_asked_for(shell: Shell) -> None:
    url = f"sqlite:///{shell.folder}/automl-runs/studies.db"
    study = Storage(url).create_study("watched", direction="minimize", limits=Limits(timeout_s=60.0, target_value=0.5))
    x = {"x": FloatDistribution(0.0, 1.0)}
    host, *place, pid, start = process_identity().split("/")
    gone = "/".join([host, *place, pid, f"1{start}"])
    for number, owner in enumerate((process_identity(), process_identity(), gone)):
        study.create_trial(number, {"x": 0.5}, x, owner=owner)
    progress, limits, head, *rows = shell("status", "watched").out.splitlines()
    assert progress == "study 'watched': 0 trials ended; 3 running"
    assert limits == "limits: timeout 60 s, target value 0.5; searched for 0 s in all"
    assert head.split() == ["trial", "state", "epoch", "value", "losses", "owner"]
    assert [row.split(maxsplit=5)[5] for row in rows] == [f"{host} pid {pid}"] * 2 + [f"{host} pid {pid} (gone)"]
    stopped = shell("stop", "watched", "--storage", url)
    assert stopped.out.splitlines()[:2] == [
        "study 'watched': 1 process will end after the running epoch",
        f"  {host} pid {pid}: trial 0, 1",
    ]
    assert "stop requested at " in shell("status", "watched").out
    facts = json.loads(shell("status", "watched", "--json").out)
    assert facts["searching"] == [{"host": host, "pid": int(pid), "trials": [0, 1]}]
    assert datetime.fromisoformat(facts["stop_requested_at"]).tzinfo is not None


def test_stop_of_an_unknown_study_is_refused(shell: Shell) -> None:
    ended = shell("stop", "nobody")
    assert ended.code == 2
    assert "'nobody'" in ended.err
