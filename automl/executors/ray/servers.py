"""The servers of a private cluster: started beyond the reach of signals that are meant for the driver, and ended.

A terminal, `timeout` and SLURM signal the whole process group, and systemd every process of the service. Ray's servers
would end at once, and the driver would wait for them for a minute instead of pausing its trials. So they lead sessions
of their own and do not see SIGTERM; `end` and the guard end them by SIGKILL, which the kernel also sends when the
driver has died.
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
from ray._private import utils, worker

from automl.executors.ray.guard import Guard
from automl.executors.ray.sessions import mark

__all__ = ["Servers", "undisturbed"]

END_S = 5.0
"""How long to wait for the end of processes that were killed; only a broken file system takes that long."""

_is_starting: ContextVar[bool] = ContextVar("starts the servers of a private cluster", default=False)


class Servers:
    """The running servers of a private cluster to which this process is connected."""

    def __init__(self, **options: object) -> None:
        """Start them and connect.

        Args:
            options: further ones for `ray.init`.
        """
        self._before = set(psutil.Process().children(recursive=True))
        self._guard: Guard | None = None
        try:
            with undisturbed(), _out_of_reach():
                ray.init(address="local", include_dashboard=False, **options)  # type: ignore[arg-type]
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
        try:
            ray.shutdown()
        finally:
            for process in family:
                _kill(process)
            psutil.wait_procs(family, timeout=END_S)
            if node is not None:
                node.destroy_external_storage()
                node.kill_all_processes(check_alive=False)  # takes note of their end
            if self._guard is not None:
                self._guard.dismiss()

    def _family(self) -> list[psutil.Process]:
        return [process for process in psutil.Process().children(recursive=True) if process not in self._before]


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keep Ray from handling SIGTERM in this process: it would end the program with exit code 15 from now on."""
    set_handler, utils.set_sigterm_handler = utils.set_sigterm_handler, lambda handler: None
    try:
        yield
    finally:
        utils.set_sigterm_handler = set_handler


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
