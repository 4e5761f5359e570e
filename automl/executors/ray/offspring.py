"""Processes that a rank starts, such as those that read data: they end with it, and by the usual signals.

A forked process holds copies of the rank's connections. When the rank is killed and it lives on, Ray takes the rank for
alive: nobody notices its end, and nothing ends the process. So the kernel is told to end it with the rank. What a
rank starts as a program of its own shares its process group, which Ray ends with the rank.
"""

import os
import select
import signal
import sys
import threading
from functools import cache
from types import FrameType

if sys.platform == "linux":
    import fcntl

__all__ = ["take_care_of_processes"]


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
    life = _Life() if sys.platform == "linux" else None

    def settle() -> None:
        if life is not None:
            life.end_with_it()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    os.register_at_fork(after_in_child=settle)


class _Life:
    """A pipe whose only writer is the process that has made it: it closes when that process ends, however it does.

    The parent-death signal (PR_SET_PDEATHSIG) would come too early: when the thread ends that has forked.
    """

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()

    def end_with_it(self) -> None:
        """Have the kernel kill this process, a forked one, when the maker ends; it need not do anything for that."""
        if self._writer >= 0:
            os.close(self._writer)
            self._writer = -1
        own = os.open(f"/proc/self/fd/{self._reader}", os.O_RDONLY)  # whom to signal is kept per opened file
        fcntl.fcntl(own, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(own, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(own, fcntl.F_SETFL, os.O_ASYNC)
        hangup = select.poll()
        hangup.register(own, 0)
        if hangup.poll(0):  # the maker has ended before
            os.kill(os.getpid(), signal.SIGKILL)


def _leave_it_to_the_driver(number: int, frame: FrameType | None) -> None:
    return
