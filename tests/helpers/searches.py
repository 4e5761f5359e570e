"""Searches in processes of their own that start in a moment: forked from a process that has everything imported.

Each runs the program's entry point as the installed script does, and can be killed and stopped like any other. Where a
test watches a take-over, their leases are shorter than a person's.
"""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.context import ForkServerContext
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.helpers.commands import Ended

__all__ = ["ForkedSearch"]

_IMPORTED = (
    "automl.cli.outcome", "automl.cli.search", "automl.executors.inline", "automl.samplers.random", "automl.session",
    "optuna.storages", "optuna.visualization", "plotly.io", "plotly.subplots", "psycopg", "studies.figures.gallery",
    "studies.figures.sections", "tests.helpers.searches", "tests.helpers.steady_toy", "torch",
)  # fmt: skip


class ForkedSearch:
    """A running `automl`; use it in a `with` statement, which ends what is left of it.

    Args:
        arguments: those of the command line.
        folder: where it is started, and where its outputs are kept.
        environment: all its environment.
        lease_s: how long its leases last; None: as long as a person's.
    """

    def __init__(
        self,
        *arguments: str | int | float | Path,
        folder: Path,
        environment: Mapping[str, str],
        lease_s: float | None = None,
    ) -> None:
        self._began = time.monotonic()
        self._name = f".search-{time.monotonic_ns()}"
        self._out, self._err = (folder / f"{self._name}.{name}" for name in ("out", "err"))
        self.is_stopped = False
        self._process = _context().Process(
            target=_become_automl,
            args=(tuple(map(str, arguments)), folder, dict(environment), self._out, self._err, lease_s),
        )
        self._process.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.join()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code (negative: killed by that signal); None while it runs."""
        return self._process.exitcode

    @property
    def err(self) -> str:
        """What it has said on standard error so far."""
        return self._err.read_text() if self._err.exists() else ""

    def send(self, number: signal.Signals) -> None:
        """Send a signal; one that has ended by itself meanwhile needs none."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)
        if number in (signal.SIGSTOP, signal.SIGCONT):
            self.is_stopped = number == signal.SIGSTOP

    def ended(self, timeout_s: float = 60.0) -> Ended:
        """Wait for its end."""
        self._process.join(timeout_s)
        assert self.code is not None, f"still running after {timeout_s:g} s\n{self.err}"
        seconds = time.monotonic() - self._began
        out = self._out.read_text() if self._out.exists() else ""
        return Ended(code=self.code, out=out, err=self.err, seconds=seconds)


def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_IMPORTED))
    return context


def _become_automl(
    arguments: tuple[str, ...], folder: Path, environment: dict[str, str], out: Path, err: Path, lease_s: float | None
) -> None:
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["automl", *arguments]
    for number, path in enumerate((Path(os.devnull), out, err)):
        opened = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)
    sys.stdout = open(1, "w", buffering=1, closefd=False)
    sys.stderr = open(2, "w", buffering=1, closefd=False)
    if lease_s is not None:
        _shorten_leases(lease_s)
    from automl.cli import main

    main()


def _shorten_leases(lease_s: float) -> None:
    from automl import search_loop, session

    for module in (search_loop, session):
        vars(module)["LEASE_S"] = lease_s
