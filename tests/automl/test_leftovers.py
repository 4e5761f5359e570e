"""A task that leaves processes behind: all of them end with it, and nothing else does."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path

import psutil
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from automl.leftovers import no_leftovers
from tests.helpers.commands import until

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"
)


@pytest.fixture(autouse=True)
def all_ended() -> Iterator[None]:
    """Whatever goes wrong in a test, nothing that it started goes on."""
    before = set(psutil.Process().children(recursive=True))
    yield
    for process in set(psutil.Process().children(recursive=True)) - before:
        if "resource_tracker" not in " ".join(process.cmdline()):
            process.kill()


def sleeps() -> None:
    time.sleep(600)


def test_script_is_ended_and_named(caplog: pytest.LogCaptureFixture) -> None:
    began = time.monotonic()
    with no_leftovers():
        script = subprocess.Popen(["sleep", "600"])
    assert time.monotonic() - began < 1.0
    assert script.poll() is not None
    assert not psutil.pid_exists(script.pid)
    assert caplog.messages == [f"ended a process that the task had left behind: sleep (pid {script.pid})"]


def test_script_that_ignores_sigterm_is_killed_after_a_second() -> None:
    with no_leftovers():
        script = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, text=True)
        assert script.stdout is not None
        script.stdout.readline()
        began = time.monotonic()
    assert 0.9 < time.monotonic() - began < 4.0
    assert not psutil.pid_exists(script.pid)
    script.stdout.close()
    script.wait()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing_child_is_ended_and_its_books_are_in_order(method: str) -> None:
    with no_leftovers():
        child = multiprocessing.get_context(method).Process(target=sleeps)  # type: ignore[attr-defined]  # by name
        child.start()
    assert not psutil.pid_exists(child.pid)
    assert child.exitcode == -signal.SIGTERM
    assert child not in multiprocessing.active_children()


def test_orphan_whose_parent_has_ended_is_found(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with no_leftovers():
        subprocess.run(["sh", "-c", f"setsid sleep 600 & echo $! > {note}"], check=True)
        orphan = int(note.read_text())
        assert psutil.pid_exists(orphan)
    assert not psutil.pid_exists(orphan)


def test_child_of_a_child_is_ended(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with no_leftovers():
        script = subprocess.Popen(["sh", "-c", f"sleep 600 & echo $! > {note}; wait"])
        grandchild = int(until(lambda: note.exists() and note.read_text().strip(), 10.0, "the grandchild"))
    assert not psutil.pid_exists(grandchild)
    assert script.poll() is not None


def test_what_ran_before_goes_on() -> None:
    service = subprocess.Popen(["sleep", "600"])
    with no_leftovers():
        script = subprocess.Popen(["sleep", "601"])
    assert (service.poll(), script.poll() is None) == (None, False)
    service.kill()
    service.wait()


def test_tracker_of_shared_memory_goes_on() -> None:
    with no_leftovers():
        resource_tracker.ensure_running()
    assert resource_tracker._resource_tracker._check_alive()  # type: ignore[attr-defined]  # asks its process


def test_loader_workers_are_ended_without_an_error_of_the_loader() -> None:
    """A DataLoader raises in the main thread for a worker that is killed while its iterator is still held."""
    with no_leftovers():
        iterator = iter(DataLoader(TensorDataset(torch.zeros(64)), num_workers=2))
        next(iterator)
        workers = [worker.pid for worker in iterator._workers]  # type: ignore[attr-defined]  # of torch
    assert len(workers) == 2
    assert not any(psutil.pid_exists(pid) for pid in workers)
    subprocess.run(["true"], check=True)  # a further child's end must not bring the error either
    del iterator


def test_error_of_the_task_is_kept() -> None:
    with pytest.raises(ZeroDivisionError), no_leftovers():
        script = subprocess.Popen(["sleep", "600"])
        raise ZeroDivisionError
    assert script.poll() is not None


def test_nothing_is_said_about_a_task_that_waited_for_its_processes(caplog: pytest.LogCaptureFixture) -> None:
    with no_leftovers():
        subprocess.run(["true"], check=True)
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert not caplog.messages
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # taken already


def test_orphans_have_their_usual_parent_afterwards(tmp_path: Path) -> None:
    with no_leftovers():
        pass
    note = tmp_path / "pid"
    subprocess.run(["sh", "-c", f"sleep 600 & echo $! > {note}"], check=True)
    orphan = psutil.Process(int(note.read_text()))
    assert orphan.ppid() != os.getpid()
    orphan.kill()
