"""Drivers that are killed or share a host with others, and trials that do not come back: through the command line."""

import signal
import socket
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from studies.trial import Trial, TrialState
from tests.helpers.commands import Command, Ended, until
from tests.helpers.homes import Home
from tests.helpers.machines import OPEN_CLUSTER, machines
from tests.helpers.wayward_toy import SPACE as WAYWARD

pytestmark = [pytest.mark.ray, pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(240)]

START_S = 90.0
"""How long a search may take until its trials train, on a busy machine."""
GONE_S = 60.0
EPOCHS = 12
SLOW = ("--space", "tests.helpers.slow_toy", "--epochs", EPOCHS, "--procs-per-trial", 2)
GIB = 2**30


def kill_and_resume(home: Home, ranks: Callable[[Command], list[psutil.Process]]) -> None:
    """Kill a driver with two trials of two ranks at work; its processes end, and another run goes on with them."""
    with home.search(*SLOW, "--trials", 2, "--concurrency", 2) as command:
        until(lambda: len(home.running_at(2)) == 2 or command.process.poll() is not None, START_S, "two trials")
        assert len(ranks(command)) == 4, command.err
        command.send(signal.SIGKILL)
        until(lambda: not ranks(command), GONE_S, "the end of all training processes")
        with home.resume() as resumed:
            ended = resumed.ended(150.0)
    assert ended.code == 0, ended
    trials = home.trials()
    assert [(trial.state, trial.attempt, trial.losses) for trial in trials] == [(TrialState.COMPLETE, 2, 1)] * 2
    for trial in trials:
        assert [epoch for epoch, _ in home.epochs_of(trial)] == list(range(1, EPOCHS + 1))
        assert Counter(attempt for _, attempt in home.epochs_of(trial))[1] >= 2, "it went on from its checkpoint"


def ranks_of(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [process for process in processes if process.name() == "ray::Rank"]


def test_killed_driver_of_a_private_cluster_leaves_no_training(tmp_path: Path) -> None:
    kill_and_resume(Home(tmp_path), lambda command: ranks_of(command.family()))


def test_killed_driver_of_a_shared_cluster_leaves_no_training(tmp_path: Path) -> None:
    with machines(4) as cluster:
        home = Home(tmp_path, cluster.address, **OPEN_CLUSTER)
        kill_and_resume(home, lambda command: cluster.ranks_on(cluster.nodes[0]))


def test_groups_on_one_host_have_ports_of_their_own(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 29500)) as foreign, machines(8) as cluster:
        foreign.setblocking(False)
        home = Home(tmp_path, cluster.address, **OPEN_CLUSTER)
        with home.search(*SLOW, "--trials", 12, "--concurrency", 4, "--cpus-per-trial", 2) as command:
            until(lambda: len(home.running_at(1)) == 4, START_S, "four trials")
            listeners = [
                (connection.laddr, rank.pid)
                for rank in cluster.ranks_on(cluster.nodes[0])
                for connection in rank.net_connections("tcp")
                if connection.status == psutil.CONN_LISTEN
            ]
            ended = command.ended(150.0)
        with pytest.raises(BlockingIOError):
            foreign.accept()  # nobody has taken it for the rendezvous
    check_ends(home, ended, ["complete"] * 12)
    ports = Counter(address.port for address, _ in listeners)
    assert len(ports) >= 4, "a rendezvous for each group"
    assert set(ports.values()) == {1}
    assert 29500 not in ports


def check_ends(home: Home, ended: Ended, ends: list[str]) -> tuple[Trial, ...]:
    """How each trial has ended: `complete`, or the cause of its failure."""
    assert ended.code == 0, ended
    trials = home.trials()
    assert [trial.cause or trial.state.name.lower() for trial in trials] == ends
    return trials


def test_trial_that_hangs_fails_at_its_limit_and_the_others_complete(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.enqueue(WAYWARD, "fine", "fine", "hang_last", "fine", "fine", "fine")
    arguments = ("--space", "tests.helpers.wayward_toy", "--epochs", 3, "--trials", 6, "--concurrency", 2)
    with home.search(*arguments, "--procs-per-trial", 2, "--trial-timeout", 10) as command:
        until(lambda: len(home.trials()) == 6 and home.trials()[2].last_epoch >= 1, START_S, "the trial that hangs")
        began = time.monotonic()
        until(lambda: home.trials(TrialState.FAILED), 25.0, "its end")
        assert time.monotonic() - began > 5.0
        trials = check_ends(home, command.ended(), ["complete"] * 2 + ["timeout"] + ["complete"] * 3)
    assert (trials[2].attempt, trials[2].attributes["failed_rank"]) == (1, 1)
    assert "longer than 10 s (--trial-timeout)" in str(trials[2].attributes["error"])


def test_trial_that_takes_all_memory_is_ended_by_ray_and_tried_again_once(tmp_path: Path) -> None:
    memory = psutil.virtual_memory()
    limit = (memory.total - memory.available + 2.5 * GIB) / memory.total
    if limit > 0.9:
        pytest.skip("too little memory is free here")
    home = Home(tmp_path, RAY_memory_usage_threshold=f"{limit:.3f}", RAY_memory_monitor_refresh_ms="100")
    home.enqueue(WAYWARD, "fine", "hoard_0", "fine", "fine")
    arguments = ("--space", "tests.helpers.wayward_toy", "--epochs", 3, "--trials", 4, "--concurrency", 1)
    with home.search(*arguments, "--procs-per-trial", 2) as command:
        ended = command.ended(150.0)
        assert not command.family()
    trials = check_ends(home, ended, ["complete", "oom", "complete", "complete"])
    assert trials[1].attempt == 2
    assert trials[1].attributes["failed_host"] == socket.gethostname()  # Ray may have chosen the other rank
