"""Trainings of `python -m trainers` that are cut short, or run on ranks of torchrun: real processes and signals."""

import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.commands import Command, Ended, environment_of, until
from tests.trainers.custom.own import write
from tests.trainers.training import assert_same_tensors
from trainers.checkpoint import read_checkpoint
from trainers.standalone import train

pytestmark = [pytest.mark.slow, pytest.mark.chaos]

TRAINERS = (sys.executable, "-m", "trainers")
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "trainers")
WAITS = """
    import pathlib, subprocess, time
    from search_spaces import Float, SearchSpace
    SPACE = SearchSpace("own", {"x": Float(low=0.0, high=1.0)}, defaults={"x": 0.5})
    METRICS = {"gain": "maximize"}
    def fit(context):
        context.report({"gain": 1.0}, {"epoch": 1})
        if context.rank == 0:
            subprocess.Popen(["sleep", "600"])
            pathlib.Path("waits").touch()
            time.sleep(600)
        context.report({"gain": 2.0}, {"epoch": 2})
    """
SMALL = ("--space", "nas_small", "--device", "cpu", "--set", "channels=8", "--folder", "run")


def command(folder: Path, *arguments: str, program: Sequence[str] = TRAINERS) -> Command:
    environment = environment_of(folder, TMPDIR=str(folder))
    return Command(*arguments, folder=folder, environment=environment, program=program)


def waiting_ranks(folder: Path) -> Command:
    """Two ranks: the first one sleeps in its own code, the second one waits for it."""
    write(folder, "own.py", WAITS)
    return command(folder, "--space", "own.py", "--ranks", "2", "--device", "cpu", "--folder", "run")


def check_nothing_is_left(started: Command, folder: Path) -> None:
    until(lambda: not started.family(), 10.0, "the end of all processes")
    assert not list(folder.glob("ranks-*"))


@pytest.mark.parametrize("to_group", [True, False], ids=["as a terminal does", "to the parent alone"])
def test_interrupt_ends_all_ranks_with_a_word(tmp_path: Path, to_group: bool) -> None:
    with waiting_ranks(tmp_path) as started:
        until((tmp_path / "waits").exists, 90.0, "the first report")
        started.send(signal.SIGINT, to_group=to_group)
        ended = started.ended(20.0)
        assert ended.code == 130, ended
        assert ended.err == "interrupted; go on by the same command with --resume (--folder run)\n"
        check_nothing_is_left(started, tmp_path)


def test_ranks_do_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    with waiting_ranks(tmp_path) as started:
        until((tmp_path / "waits").exists, 90.0, "the first report")
        started.send(signal.SIGKILL)
        started.process.wait()
        check_nothing_is_left(started, tmp_path)


def test_interrupted_training_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    with command(tmp_path, *SMALL, "--epochs", "8") as started:
        record = tmp_path / "run" / "training.json"
        until(lambda: record.exists() and json.loads(record.read_text())["kept"][-1]["file"]["epoch"] >= 2, 90.0, "it")
        started.send(signal.SIGINT, to_group=True)
        ended = started.ended(20.0)
        assert ended.code == 130, ended
        assert "Traceback" not in ended.err
    settings: dict[str, Any] = {"channels": 8, "epochs": 8}
    whole = train("nas_small", settings=settings, folder=tmp_path / "whole", device="cpu")
    resumed = train("nas_small", settings=settings, folder=tmp_path / "run", device="cpu", resume=True)
    assert whole.last is not None and resumed.last is not None
    left, right = read_checkpoint(whole.last), read_checkpoint(resumed.last)
    assert_same_tensors(dict(left.network), dict(right.network))
    assert_same_tensors(dict(left.optimization), dict(right.optimization))
    assert (whole.best or Path()).name == (resumed.best or Path()).name


def under_torchrun(folder: Path, *arguments: str) -> Ended:
    with command(folder, *arguments, program=TORCHRUN) as started:
        return started.ended()


def test_ranks_of_torchrun_train_as_ranks_of_our_own(tmp_path: Path) -> None:
    ended = under_torchrun(tmp_path, *SMALL, "--epochs", "2")
    assert ended.code == 0, ended
    assert [line.split()[:2] for line in ended.out.splitlines()[:2]] == [["epoch", "1/2"], ["epoch", "2/2"]]
    assert len(ended.out.splitlines()) == 5
    settings: dict[str, Any] = {"channels": 8, "epochs": 2}
    own = train("nas_small", settings=settings, folder=tmp_path / "own", device="cpu", ranks=2)
    assert own.last is not None
    theirs = read_checkpoint(tmp_path / "run" / "checkpoints" / own.last.name)
    assert_same_tensors(dict(read_checkpoint(own.last).network), dict(theirs.network))


def test_mistake_is_told_once_by_the_ranks_of_torchrun(tmp_path: Path) -> None:
    ended = under_torchrun(tmp_path, *SMALL, "--set", "epocs=3")
    assert ended.code == 1
    assert ended.err.count("did you mean 'epochs'") == 1
    assert not (tmp_path / "run").exists()
