"""Machines of a Ray cluster that somebody has started by hand: `ray start`, each with a folder of its own."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from automl.processes import is_at_work
from tests.helpers.commands import environment_of, until
from tests.helpers.postgres import free_port

__all__ = ["RayNode", "token_in"]

START_S = 60.0


class RayNode:
    """One `ray start --block`; use it in a `with` statement, which ends it.

    Args:
        token: the token of the cluster; empty: it has none.
        head: the address of the cluster to join; None: this is the head.
        cpus: logical CPUs that it offers.
    """

    def __init__(self, *, token: str = "", head: str | None = None, cpus: int = 1) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # short, since sockets lie below it
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}" if head is None else head
        self.environment = environment_of(self.folder, **token_in(token), RAY_USAGE_STATS_ENABLED="0")
        where = ["--head", "--port", str(self.port), "--include-dashboard=false"]
        command = [
            str(Path(sys.executable).parent / "ray"), "start", "--block", "--num-cpus", str(cpus),
            "--temp-dir", str(self.folder / "ray"), *(where if head is None else ["--address", head]),
        ]  # fmt: skip
        self._log = self.folder / "log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def __enter__(self) -> Self:
        until(self._has_started, START_S, "ray start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(30.0)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        shutil.rmtree(self.folder)

    def processes(self) -> list[psutil.Process]:
        """All its processes that are alive."""
        return [*filter(is_at_work, psutil.Process(self._process.pid).children(recursive=True))]

    def _has_started(self) -> bool:
        log = self._log.read_text()
        assert self._process.poll() is None, log
        return "Ray runtime started" in log


def token_in(token: str) -> Mapping[str, str]:
    """The variables that hold a token; without one, those that say so."""
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token} if token else {"RAY_AUTH_MODE": "disabled"}
