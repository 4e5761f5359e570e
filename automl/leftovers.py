"""Ends the processes that a task leaves behind, so that nothing of it holds memory, a GPU or a port afterwards.

On Linux also those whose own parent has ended are found: for as long as the task runs, this process takes the place of
their parent (prctl(2), PR_SET_CHILD_SUBREAPER).
"""

import ctypes
import logging
import multiprocessing
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import psutil

from automl.processes import is_at_work

__all__ = ["no_leftovers"]

GRACE_S = 1.0
"""How long a process may take to end by itself after SIGTERM."""
_KILL_S = 5.0
"""How long the kernel may take to end a killed process; one that waits for a dead disk takes for ever."""
_SERVICES = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
"""Processes of Python's that serve this process until its end, whoever has asked for them first."""
_COMPILER = "torch._inductor.compile_worker"
"""Torch's pool of compilers, which every later `torch.compile` of this process uses."""
_ROUNDS = 3
"""How often to look again: what is being ended may start others."""
_SET_SUBREAPER, _GET_SUBREAPER = 36, 37

_log = logging.getLogger(__name__)


@contextmanager
def no_leftovers() -> Iterator[None]:
    """Run a block, then end every process that it has started and not waited for.

    Each gets SIGTERM, and after a second SIGKILL. Spared is what ran before, so that a service which shall outlive a
    task can be started when a trainer is loaded, and what serves the whole process: Python's resource tracker and fork
    server, and torch's compilers. What other threads start during the block is ended, too. One block at a time.
    Where nothing was started it costs a few system calls.
    """
    known = set(_family())
    with _adopting_orphans():
        try:
            yield
        finally:
            for _ in range(_ROUNDS):
                found = set(_family()) - known
                if not found:
                    break
                known |= found
                with _without_child_signals():
                    _end([process for process in found if not _serves(process)])


def _family() -> Sequence[psutil.Process]:
    """All that came of this process and is there still; whoever has ended, but was not waited for, is part of it."""
    if sys.platform == "linux":
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return ()  # no child at all: the usual case, and far cheaper to know than a list of all processes
    return psutil.Process().children(recursive=True)


def _serves(process: psutil.Process) -> bool:
    try:
        line = " ".join(process.cmdline())
        # What a fork server has forked bears its name; it is the person's, while the server itself is our child.
        return _COMPILER in line or (any(name in line for name in _SERVICES) and process.ppid() == os.getpid())
    except psutil.Error:
        return False


def _end(processes: Sequence[psutil.Process]) -> None:
    names = [f"{_name(process)} (pid {process.pid})" for process in processes if is_at_work(process)]
    for process in processes:
        with suppress(psutil.Error):
            process.terminate()
    _wait(processes, GRACE_S)
    for process in processes:
        with suppress(psutil.Error):
            process.kill()
    _wait(processes, _KILL_S)
    _reap(processes)
    if names:
        count = "a process" if len(names) == 1 else f"{len(names)} processes"
        _log.warning("ended %s that the task had left behind: %s", count, ", ".join(names))
    stubborn = [process.pid for process in processes if is_at_work(process)]
    if stubborn:
        _log.error("cannot end processes of the task; they wait for a device or a disk pids=%s", stubborn)


def _wait(processes: Sequence[psutil.Process], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    for process in processes:
        _wait_for(process, max(0.0, deadline - time.monotonic()))


def _wait_for(process: psutil.Process, timeout_s: float) -> None:
    """Wait until a process has ended, without taking its exit code from whoever else waits for it."""
    try:
        end_of_process = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):  # another system than Linux, or a container that does not allow it
        with suppress(psutil.Error):
            process.wait(timeout_s)
        return
    try:
        # A zombie may have threads that are still ending; only this tells when its exit code can be taken.
        if process.is_running():
            poll = select.poll()
            poll.register(end_of_process, select.POLLIN)
            poll.poll(timeout_s * 1000)
    finally:
        os.close(end_of_process)


def _reap(processes: Sequence[psutil.Process]) -> None:
    """Take the exit codes of our own children; those of `multiprocessing` by its own means, which keep its books."""
    multiprocessing.active_children()
    for process in processes:
        with suppress(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return "unknown"


@contextmanager
def _without_child_signals() -> Iterator[None]:
    """Let nobody be told of the ends that we bring about: a DataLoader would raise an error for its workers.

    Its handler is there only when this is the main thread.
    """
    previous = signal.getsignal(signal.SIGCHLD)
    if threading.current_thread() is not threading.main_thread() or previous is None:
        yield
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, previous)


@contextmanager
def _adopting_orphans() -> Iterator[None]:
    if sys.platform != "linux":
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    was = ctypes.c_int()
    libc.prctl(_GET_SUBREAPER, ctypes.byref(was), 0, 0, 0)
    libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(_SET_SUBREAPER, was.value, 0, 0, 0)
