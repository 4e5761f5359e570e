"""Where a worker process is with its task: told from outside its thread, so that it can be told when that hangs."""

import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import psutil

from automl.executors.ray.watch import Pulse
from automl.memory_kills import memory_kills

__all__ = ["VitalSigns"]

_WAITING = tuple(f"{os.sep}torch{os.sep}{package}{os.sep}" for package in ("distributed", "autograd"))
"""Where a rank waits for its peers: in an operation of all ranks, or where a backward pass joins the gradients."""
_DEEPEST_STACK = 40


class VitalSigns:
    """Looks at the thread that works on a task, from another thread."""

    def __init__(self) -> None:
        self._thread: int | None = None
        self._process = psutil.Process()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look at the calling thread from now on."""
        self._thread = threading.get_ident()
        try:
            yield
        finally:
            self._thread = None

    def pulse(self) -> Pulse:
        """What the thread does at this moment."""
        thread = self._thread
        frame = None if thread is None else sys._current_frames().get(thread)
        return Pulse(
            place=None if frame is None else _place(frame),
            stack="" if frame is None else "".join(traceback.format_stack(frame, limit=_DEEPEST_STACK)),
            waits_for_peers=frame is not None and any(place in frame.f_code.co_filename for place in _WAITING),
            cpu_s=self._cpu_s(),
            thread_cpu_s=0.0 if frame is None or thread is None else _cpu_of_thread(thread),
            memory_kills=memory_kills(),
        )

    def _cpu_s(self) -> float:
        """CPU time of this process and of the children that it has at the moment and has had, in seconds."""
        times = os.times()
        total = times.user + times.system + times.children_user + times.children_system
        for child in self._process.children(recursive=True):
            try:
                used = child.cpu_times()
            except psutil.NoSuchProcess:  # counted as one that it has had, next time
                continue
            total += used.user + used.system
        return total


def _cpu_of_thread(thread: int) -> float:
    try:
        return time.clock_gettime(time.pthread_getcpuclockid(thread))
    except OSError:  # it has ended since
        return 0.0


def _place(frame: FrameType) -> int:
    """The instructions that the calls of a thread stand at, as one value."""
    calls: list[tuple[int, int]] = []
    step: FrameType | None = frame
    while step is not None:
        calls.append((id(step.f_code), step.f_lasti))
        step = step.f_back
    return hash(tuple(calls))
