"""Processes that a rank starts, such as those that read data: they end with it, and by the usual signals.

A forked process holds copies of the rank's connections. When the rank is killed and it lives on, Ray takes the rank for
alive: nobody notices its end, and nothing ends the process. So the kernel is told to end it with its parent. What a
rank starts as a program of its own shares its process group, which Ray ends with the rank.
"""

import ctypes
import os
import signal
import sys
import threading
from functools import cache
from types import FrameType

__all__ = ["take_care_of_processes"]

_PR_SET_PDEATHSIG = 1


def take_care_of_processes() -> None:
    """Prepare this process, and the thread that calls, for starting others; call it in the main thread first.

    The servers of a private cluster do not see SIGTERM, and neither would anything that descends from them: a process
    that is told to terminate by its own program would stay. The rank itself ends when the driver says so, since a
    signal to a whole service or job reaches both of them.
    """
    _settle_forked_processes()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _leave_it_to_the_driver)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


@cache
def _settle_forked_processes() -> None:
    end_with_parent = _kernel_call() if sys.platform == "linux" else None

    def settle() -> None:
        if end_with_parent is not None:
            end_with_parent(_PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    os.register_at_fork(after_in_child=settle)


def _kernel_call() -> "ctypes._NamedFuncPointer":
    """`prctl`, looked up before the first fork, since a forked process should do little."""
    return ctypes.CDLL(None).prctl


def _leave_it_to_the_driver(number: int, frame: FrameType | None) -> None:
    return
