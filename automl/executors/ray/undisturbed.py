"""Keeps Ray from handling SIGTERM in this process, and from writing to its output.

Its handlers would end the program on the spot.

Ray has two: one of Python's, which leaves with exit code 15, and one in its C++ core, which prints a stack trace and
aborts. Both are put in place by `ray.init`, whatever the program has installed before. Its reports of workers that have
died go to standard output in any case; each such end is told by ourselves, with its cause.
"""

import ctypes
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from ray._private import utils, worker

__all__ = ["undisturbed"]

_ACTION_BYTES = 1024
"""More than any system's `struct sigaction` has (152 with glibc)."""


@contextmanager
def undisturbed() -> Iterator[None]:
    """Leave the handling of SIGTERM as it is while Ray connects; one that comes meanwhile is handled afterwards."""
    listen, worker.listen_error_messages = worker.listen_error_messages, lambda *arguments: None
    set_handler, utils.set_sigterm_handler = utils.set_sigterm_handler, lambda handler: None
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    action = _action()
    try:
        yield
    finally:
        _restore(action)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        utils.set_sigterm_handler = set_handler
        worker.listen_error_messages = listen


def _action() -> "ctypes.Array[ctypes.c_char]":
    """What the system does with SIGTERM in this process; Python knows only what was set by itself."""
    action = ctypes.create_string_buffer(_ACTION_BYTES)
    _call(None, action)
    return action


def _restore(action: "ctypes.Array[ctypes.c_char]") -> None:
    _call(action, None)


def _call(new: "ctypes.Array[ctypes.c_char] | None", old: "ctypes.Array[ctypes.c_char] | None") -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.sigaction(int(signal.SIGTERM), new, old) != 0:
        error = ctypes.get_errno()
        raise OSError(error, "sigaction")
