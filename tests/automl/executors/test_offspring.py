"""Processes that a rank has started: none holds up the news of its end, and none outlives it."""

import multiprocessing
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.process import BaseProcess
from typing import Any

import psutil
import pytest
import ray

from automl.executors.ray.offspring import take_care_of_processes
from tests.helpers.commands import until

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_cluster")]


class Parent:
    """Starts processes as ranks do."""

    def __init__(self) -> None:
        take_care_of_processes()

    def start(self) -> tuple[int, list[int]]:
        take_care_of_processes()
        self._program = subprocess.Popen(["sleep", "1000"])
        self._forked: BaseProcess = multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000.0,))
        self._forked.start()
        self._of_helper = self._forked_by_helper()
        assert self._forked.pid is not None
        assert self._of_helper.pid is not None
        return os.getpid(), [self._program.pid, self._forked.pid, self._of_helper.pid]

    def _forked_by_helper(self) -> BaseProcess:
        """A process whose forking thread has ended."""
        forked = multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000.0,))
        with ThreadPoolExecutor(1) as helper:
            helper.submit(forked.start).result()
        return forked

    def helped_lives(self, seconds: float) -> bool:
        """Whether that process lives on for a while."""
        self._of_helper.join(seconds)
        return self._of_helper.exitcode is None

    def end_them(self) -> tuple[int, int | None]:
        self._program.terminate()
        self._forked.terminate()
        self._of_helper.terminate()
        code = self._program.wait(10.0)
        self._forked.join(10.0)
        return code, self._forked.exitcode

    def stay(self) -> None:
        time.sleep(1000.0)


def started_parent() -> Any:
    return ray.remote(Parent).remote()


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_killed_rank_is_missed_at_once_and_its_processes_end_with_it() -> None:
    parent = started_parent()
    pid, started = ray.get(parent.start.remote())
    staying = parent.stay.remote()
    os.kill(pid, signal.SIGKILL)
    done, _ = ray.wait([staying], timeout=10.0)
    assert done, "a process that it had forked kept its connections open"
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(done)
    until(lambda: not any(map(is_running, started)), 10.0, "the end of its processes")


def test_forked_process_outlives_the_thread_that_has_forked_it() -> None:
    parent = started_parent()
    ray.get(parent.start.remote())
    assert ray.get(parent.helped_lives.remote(0.5))
    ray.get(parent.end_them.remote(), timeout=30.0)
    ray.kill(parent)


def test_rank_lives_on_after_sigterm_and_its_processes_do_not() -> None:
    parent = started_parent()
    pid, _ = ray.get(parent.start.remote())
    os.kill(pid, signal.SIGTERM)
    assert ray.get(parent.end_them.remote(), timeout=30.0) == (-signal.SIGTERM, -signal.SIGTERM)
    ray.kill(parent)
