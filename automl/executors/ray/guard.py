"""Ends what a private cluster leaves behind when its driver has died without a word, as by `kill -9`.

The kernel ends Ray's servers together with the driver, but two agents of theirs go on for a minute, trying to tell the
dead head about it. The guard is a process that waits for the end of a pipe which only the driver holds open.
"""

import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import psutil

__all__ = ["Guard"]


class Guard:
    """Watches over the processes of a cluster, from a process of its own."""

    def __init__(self, wards: Iterable[psutil.Process]) -> None:
        """Start the process; `wards` are what it ends when this process has gone."""
        names = [f"{ward.pid}:{ward.create_time()}" for ward in wards if ward.is_running()]
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__)), *names],
            stdin=subprocess.PIPE,
            start_new_session=True,  # a terminal's Ctrl-C is for the driver
        )

    def dismiss(self) -> None:
        """End the process: whoever it watched over ends in good order."""
        self._process.kill()
        self._process.communicate()


def _end(wards: Sequence[str]) -> None:
    for ward in wards:
        pid, _, created = ward.partition(":")
        try:
            process = psutil.Process(int(pid))
            if process.create_time() == float(created):  # else: the number belongs to another process by now
                process.kill()
        except psutil.NoSuchProcess:
            continue


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # what ends the driver's whole service or job is for the driver, too
    sys.stdin.read()
    _end(sys.argv[1:])
