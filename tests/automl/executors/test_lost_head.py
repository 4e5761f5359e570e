"""Searches whose Ray cluster dies under them: they say so soon, and their trials can be resumed."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from studies.trial import Trial, TrialState
from tests.helpers.commands import Command, Ended, until
from tests.helpers.homes import Home
from tests.helpers.machines import OPEN_CLUSTER
from tests.helpers.ray_nodes import RayNode

pytestmark = [pytest.mark.ray, pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(240)]

START_S = 90.0
"""How long a search may take until its trials train, on a busy machine."""
LOST_S = 20.0
"""How soon a search has ended after the loss of its cluster."""
INTERRUPTED_S = 10.0
SLOW = ("--space", "tests.helpers.slow_toy", "--epochs", 12, "--trials", 2, "--concurrency", 2)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def head() -> Iterator[RayNode]:
    with RayNode(cpus=2) as node:
        yield node


def kill(processes: list[psutil.Process], name: str, how: signal.Signals = signal.SIGKILL) -> None:
    (server,) = [process for process in processes if process.name() == name]
    server.send_signal(how)


def wait_for_trials(home: Home, command: Command) -> None:
    until(lambda: len(home.running_at(2)) == 2 or command.process.poll() is not None, START_S, "two trials")


def check_lost(home: Home, command: Command, since: float) -> None:
    ended = command.ended(2 * LOST_S)
    assert time.monotonic() - since < LOST_S
    assert ended.code == 1, ended
    check_words(ended)
    check_given_back(home.trials())


def check_words(ended: Ended) -> None:
    assert "the Ray cluster is gone" in ended.err
    assert "automl resume" in ended.err
    assert "Traceback" not in ended.err


def check_given_back(trials: tuple[Trial, ...]) -> None:
    assert [trial.state for trial in trials] == [TrialState.PAUSED] * 2


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("server", ["gcs_server", "raylet"])
def test_search_ends_soon_after_its_private_cluster_and_can_be_resumed(
    home: Home, server: str, how: signal.Signals
) -> None:
    with home.search(*SLOW) as command:
        wait_for_trials(home, command)
        kill(command.family(), server, how)
        check_lost(home, command, time.monotonic())
        until(lambda: not command.family(), 5.0, "the end of all processes")
    with home.resume() as resumed:
        ended = resumed.ended()
    assert ended.code == 0, ended
    assert [trial.state for trial in home.trials()] == [TrialState.COMPLETE] * 2


@pytest.mark.parametrize("server", ["gcs_server", "raylet"])
def test_search_ends_soon_after_the_cluster_that_it_has_joined(tmp_path: Path, head: RayNode, server: str) -> None:
    home = Home(tmp_path, head.address, **OPEN_CLUSTER)
    with home.search(*SLOW) as command:
        wait_for_trials(home, command)
        kill(head.processes(), server)
        check_lost(home, command, time.monotonic())


def test_interrupt_after_the_death_of_the_head_is_obeyed(home: Home) -> None:
    with home.search(*SLOW) as command:
        wait_for_trials(home, command)
        kill(command.family(), "gcs_server")
        began = time.monotonic()
        command.send(signal.SIGINT, to_group=True)
        ended = command.ended(2 * LOST_S)
        assert time.monotonic() - began < INTERRUPTED_S
        assert ended.code == 128 + signal.SIGINT, ended
        until(lambda: not command.family(), 5.0, "the end of all processes")
    check_given_back(home.trials())
