"""The limits are the study's: time, trials and target hold for all its processes and runs."""

import shlex

import pytest

from studies.storage import Storage
from studies.study import Study
from studies.trial import TrialState
from tests.automl.cli.conftest import TOY, Shell
from tests.helpers.commands import until
from tests.helpers.searches import ForkedSearch

SLOW = ("search", "--space", "tests.helpers.slow_toy", "--study", "limited", *TOY)


def made(shell: Shell, space: str) -> Study:
    """The study before its first run, so that trials can be queued."""
    storage = Storage(f"sqlite:///{shell.folder}/automl-runs/studies.db")
    return storage.create_study("limited", direction="minimize", specification={"space": space, "metric": "loss"})


def started(study: Study) -> bool:
    return any(trial.state is TrialState.RUNNING for trial in study.trials())


@pytest.mark.slow
def test_timeout_pauses_and_only_a_larger_one_goes_on(shell: Shell) -> None:
    ended = shell(*SLOW, "--trials", "9", "--epochs", "60", "--timeout", "2")
    assert ended.code == 3, ended
    assert "timeout of 2 s reached" in ended.out
    assert ended.out.splitlines()[-1] == "go on with: automl resume limited --timeout 4"
    study = Storage(f"sqlite:///{shell.folder}/automl-runs/studies.db").open_study("limited")
    assert 2.0 <= study.standing.searched_s < 4.0
    assert [trial.state for trial in study.trials()] == [TrialState.PAUSED]
    epochs = study.trials()[0].last_epoch
    assert epochs >= 1
    again = shell("resume", "limited")
    assert (again.code, again.err) == (3, "")
    assert "nothing left to do, timeout of 2 s reached" in again.out
    assert again.out.splitlines()[-1] == "go on with: automl resume limited --timeout 4"
    more = shell(*shlex.split(again.out.splitlines()[-1].partition(": automl ")[2]))
    assert "timeout of 4 s reached" in more.out, more
    (trial,) = study.trials()
    assert (trial.state, trial.attempt, trial.losses) == (TrialState.PAUSED, 2, 0)
    assert trial.last_epoch > epochs
    assert "limits: 9 trials, timeout 4 s; searched for " in shell("status", "limited").out


@pytest.mark.slow
def test_timeout_does_not_wait_for_a_long_epoch(shell: Shell) -> None:
    study = made(shell, "tests.helpers.moody_toy")
    assert shell("enqueue", "limited", "x=0.5", "mood=fine", "epoch_s=60").code == 0
    search = ("search", "--space", "tests.helpers.moody_toy", "--study", "limited", *TOY, "--timeout", "4")
    with ForkedSearch(*search, folder=shell.folder, environment=shell.environment) as command:
        until(lambda: started(study), 60.0, "the first epoch")
        ended = command.ended(timeout_s=4.0 + 7.0 + 10.0)
    assert ended.code == 3, ended
    assert [trial.state for trial in study.trials()] == [TrialState.PAUSED]
    assert study.standing.searched_s < 18.0


@pytest.mark.chaos
@pytest.mark.slow
def test_raised_limit_of_trials_is_obeyed_by_the_process_that_searches_already(shell: Shell) -> None:
    study = made(shell, "tests.helpers.slow_toy")
    search = (*SLOW, "--trials", "1", "--epochs", "8")
    with ForkedSearch(*search, folder=shell.folder, environment=shell.environment) as first:
        until(lambda: started(study), 60.0, "the first trial")
        assert shell("resume", "limited", "--trials", "4").code == 0
        ended = first.ended(timeout_s=60.0)
    assert ended.code == 0, ended
    assert "all 4 trials ended; 4 complete" in ended.out
    assert ended.err.count("] started ") > 1
    assert "/4 spent=" in ended.err, "the total is the raised one"
    assert [(trial.state, trial.attempt) for trial in study.trials()] == [(TrialState.COMPLETE, 1)] * 4


@pytest.mark.chaos
@pytest.mark.slow
def test_target_reached_by_one_process_ends_the_other(shell: Shell) -> None:
    study = made(shell, "tests.helpers.moody_toy")
    assert shell("enqueue", "limited", "x=0.9", "mood=fine", "epoch_s=1.5").code == 0
    assert shell("enqueue", "limited", "x=0.3", "mood=fine", "epoch_s=0").code == 0
    search = (
        "search", "--space", "tests.helpers.moody_toy", "--study", "limited", *TOY, "--epochs", "30",
        "--target-value", "0.04",
    )  # fmt: skip
    with ForkedSearch(*search, folder=shell.folder, environment=shell.environment) as long:
        until(lambda: started(study), 60.0, "the long trial")
        quick = shell(*search)
        ended = long.ended(timeout_s=20.0)
    for one in (quick, ended):
        assert one.code == 0, one
        assert "target value 0.04 reached by trial 1 (0.0333333)" in one.out
        assert "go on with a better target: automl resume limited --target-value VALUE" in one.out
    assert [trial.state for trial in study.trials()] == [TrialState.PAUSED, TrialState.COMPLETE]
