"""Starts `automl` as a person does, in a process of its own, and finds every process that came of it."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import psutil

__all__ = ["REPOSITORY", "Command", "Ended", "environment_of", "until"]

REPOSITORY = Path(__file__).resolve().parents[2]
_MARK = "AUTOML_TEST_MARK"
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What a command left: its exit code (negative: killed by that signal), its words, and how long it took."""

    code: int
    out: str
    err: str
    seconds: float

    def __str__(self) -> str:
        return f"exit code {self.code} after {self.seconds:.1f} s\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def environment_of(folder: Path, **more: str) -> dict[str, str]:
    """The environment of a person whose remembered facts lie below `folder`; the tests' modules can be imported."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    own = {"XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    return {**kept, **own, **more}


def until(answer: Callable[[], _Answer], timeout_s: float, what: str) -> _Answer:
    """Ask again until the answer is true; fail when that takes too long."""
    deadline = time.monotonic() + timeout_s
    while not (found := answer()):
        assert time.monotonic() < deadline, f"waited {timeout_s:g} s in vain for {what}"
        time.sleep(0.02)
    return found


class Command:
    """A running `automl`; use it in a `with` statement, which ends what is left of it.

    It leads a session of its own, so that a signal to its group is what a terminal sends for Ctrl-C.
    """

    def __init__(
        self,
        *arguments: str | int | float | Path,
        folder: Path,
        environment: Mapping[str, str],
        program: Sequence[str] = (sys.executable, "-m", "automl"),
    ) -> None:
        self.mark = uuid.uuid4().hex
        self._out, self._err = (folder / f".{self.mark}.{name}" for name in ("out", "err"))
        self._began = time.monotonic()
        with self._out.open("w") as out, self._err.open("w") as err:
            self.process = subprocess.Popen(
                [*program, *map(str, arguments)],
                cwd=folder,
                # Ray names its workers by overwriting the memory that /proc shows as their environment.
                env={**environment, _MARK: self.mark, "SPT_NOENV": "1"},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.family():
            process.kill()
        self.process.wait()
        self._out.unlink()
        self._err.unlink()

    @property
    def err(self) -> str:
        """What it has said on standard error so far."""
        return self._err.read_text()

    def family(self) -> list[psutil.Process]:
        """The command's process and all that came of it, whoever their parent is now."""
        return [process for process in psutil.process_iter() if _carries(process, self.mark)]

    def send(self, number: signal.Signals, *, to_group: bool = False) -> None:
        if to_group:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)

    def ended(self, timeout_s: float = 120.0) -> Ended:
        """Wait for its end."""
        try:
            code = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout_s:g} s\n{self.err}") from None
        seconds = time.monotonic() - self._began
        return Ended(code=code, out=self._out.read_text(), err=self._err.read_text(), seconds=seconds)


def _carries(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(_MARK) == mark and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
