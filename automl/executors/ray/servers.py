"""The servers of a private cluster: started beyond the reach of signals that are meant for the driver, and ended.

A terminal, `timeout` and SLURM signal the whole process group, and systemd every process of the service. Ray's servers
would end at once, and the driver would wait for them for a minute instead of pausing its trials. So they lead sessions
of their own and do not see SIGTERM; `end` and the guard end them by SIGKILL, which the kernel also sends when the
driver has died. By their sessions they are also told from what else the program has started.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

import psutil
import ray
from ray._private import worker

from automl.executors.ray.guard import Guard
from automl.executors.ray.lifeline import Lifeline
from automl.executors.ray.sessions import mark
from automl.executors.ray.undisturbed import undisturbed

__all__ = ["Servers"]

END_S = 2.0
"""How long to wait for the end of processes that were killed; only a broken file system takes that long."""
NEEDED = ("gcs_server", "raylet")
"""Names of the servers without which nothing runs; Ray does without the others."""

_RAY = str(Path(ray.__file__).parent)
_is_starting: ContextVar[bool] = ContextVar("starts the servers of a private cluster", default=False)


class Servers:
    """The running servers of a private cluster to which this process is connected.

    Attributes:
        lifeline: tells whether those that are needed are alive.
    """

    def __init__(self, **options: object) -> None:
        """Start them and connect.

        Args:
            options: further ones for `ray.init`.
        """
        before = set(psutil.Process().children())
        self._leaders: list[psutil.Process] = []
        self._guard: Guard | None = None
        try:
            try:
                with undisturbed(), _out_of_reach():
                    ray.init(address="local", include_dashboard=False, **options)  # type: ignore[arg-type]
            finally:
                self._leaders = [
                    child for child in psutil.Process().children() if child not in before and _leads(child)
                ]
            self.lifeline = Lifeline([leader for leader in self._leaders if leader.name() in NEEDED])
            assert worker._global_node is not None
            mark(Path(worker._global_node.get_session_dir_path()))
            self._guard = Guard(self._family())
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Leave the cluster and end all its processes; they need not be alive any more."""
        node, worker._global_node = worker._global_node, None  # else Ray ends each by SIGTERM and waits a second for it
        family = self._family()
        is_whole = node is not None and self.lifeline.is_whole()
        try:
            if not is_whole:
                _kill(family)  # else Ray would wait for answers
            ray.shutdown()
        finally:
            _kill(family)
            psutil.wait_procs(family, timeout=END_S)
            if node is not None:
                node.destroy_external_storage()
                node.kill_all_processes(check_alive=False)  # takes note of their end
            if self._guard is not None:
                self._guard.dismiss()

    def _family(self) -> list[psutil.Process]:
        """The servers and what they have started: in their sessions, whoever its parent is now, or in own ones.

        The numbers of dead servers name no other session, because nobody has asked after them yet.
        """
        sessions = {leader.pid for leader in self._leaders}
        members = [process for process in psutil.process_iter() if _session_of(process) in sessions]
        return [*dict.fromkeys([*members, *(child for member in members for child in _children(member))])]


def _leads(process: psutil.Process) -> bool:
    """Whether a child of ours is a server of Ray's: what the program itself has started meanwhile is not."""
    try:
        return _session_of(process) == process.pid and any(_RAY in word for word in process.cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def _session_of(process: psutil.Process) -> int | None:
    try:
        return os.getsid(process.pid)
    except (ProcessLookupError, PermissionError):
        return None


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue


@contextmanager
def _out_of_reach() -> Iterator[None]:
    """Let processes that are forked here not be reached by signals to the driver's group, nor by SIGTERM."""
    _settle_new_processes()
    token = _is_starting.set(True)
    try:
        yield
    finally:
        _is_starting.reset(token)


@cache
def _settle_new_processes() -> None:
    os.register_at_fork(after_in_child=_settle)


def _settle() -> None:
    if _is_starting.get():
        os.setsid()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
