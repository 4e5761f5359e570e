"""A person's script as a process: its words come in as lines, and nothing of it is left behind."""

import logging
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from trainers.custom import guard
from trainers.custom.lines import lines_of
from trainers.errors import TrialError, UserCodeError

__all__ = ["ScriptKilledError", "ScriptProcess"]

_LAST_LINES = 15
"""Lines of a script's log that an error shows."""
_MOST_SHOWN = 2000
"""Characters of them."""
_END_S = 4 * guard.GRACE_S
"""How long the guard may take to end everything."""
_SIGKILL = 9

_log = logging.getLogger(__name__)


class ScriptKilledError(TrialError):
    """A script was ended by SIGKILL, which nothing of ours has sent: from outside, or by a machine without memory."""

    cause = "lost"


class ScriptProcess:
    """A running script; use it in a `with` statement, which ends what is left of it.

    Args:
        words: the program and its arguments.
        folder: working folder.
        environment: all its environment.
    """

    def __init__(self, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._status, theirs = os.pipe()
        try:
            self._guard = subprocess.Popen(
                # A program of its own: a fork of this process, which has many threads, could hang.
                [sys.executable, "-P", guard.__file__, str(theirs), *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=dict(environment),
                pass_fds=(theirs,),
                start_new_session=True,  # it outlives us for as long as it takes to end the script
            )
        finally:
            os.close(theirs)
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._errors = threading.Thread(target=self._read_errors, name="script-stderr", daemon=True)
        self._errors.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the script, and wait until nothing of it is left."""
        assert self._guard.stdin is not None and self._guard.stdout is not None and self._guard.stderr is not None
        self._guard.stdin.close()  # this is what ends it
        try:
            self._guard.wait(_END_S)
        except subprocess.TimeoutExpired:
            _log.error("the processes of the script do not end; they wait for a device or a disk guard=%d", self.pid)
            self._guard.kill()
            self._guard.wait()
        self._errors.join(_END_S)
        self._guard.stdout.close()
        self._guard.stderr.close()
        os.close(self._status)

    @property
    def pid(self) -> int:
        """The process that ends all others of the script."""
        return self._guard.pid

    def lines(self) -> Iterator[str]:
        """Yield what it prints on standard output, as it comes, until its end."""
        yield from lines_of(cast(BufferedReader, self._guard.stdout))

    def check_end(self) -> None:
        """Wait for its end, after its last line.

        Raises:
            UserCodeError: it could not be started, has failed, or was ended by a signal; with its last words.
            ScriptKilledError: it was killed.
        """
        self._guard.wait()
        self._errors.join(_END_S)
        how, _, what = os.read(self._status, 4096).decode(errors="replace").partition(" ")
        if how == "exit" and what == "0":
            return
        if how == "error":
            raise UserCodeError(f"the script cannot be started: {what}")
        if how == "exit":
            raise UserCodeError(f"the script ended with exit code {what}{self._last_words()}")
        if how == "signal" and int(what) != _SIGKILL:
            raise UserCodeError(f"the script was ended by signal {what}{self._last_words()}")
        raise ScriptKilledError(
            f"the script was killed from outside, or because the machine's memory was full{self._last_words()}"
        )

    def _last_words(self) -> str:
        """What to add to an error: the last line of standard error, and those before it on lines of their own."""
        if not self._last:
            return "; it said nothing on standard error"
        *before, last = self._last
        end = "\n".join(["", "its standard error ended:", *before, last])[-_MOST_SHOWN:] if before else ""
        return f": {last[:_MOST_SHOWN]}{end}"

    def _read_errors(self) -> None:
        for line in lines_of(cast(BufferedReader, self._guard.stderr)):
            _log.debug("script stderr: %s", line)
            if line.strip():
                self._last.append(line)
