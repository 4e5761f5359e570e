"""What an epoch costs inside: time per step, waiting for data, the device's load; measured without making it slower.

Only the clocks are read while steps run. On a GPU the end of each step is marked by an event in the device's own queue,
so that nobody waits for it.
"""

import logging
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Protocol, TypeVar

import torch

from trainers.device_load import DeviceLoad, load_of

__all__ = ["CLOCK_METRICS", "Monitor"]

logger = logging.getLogger(__name__)

CLOCK_METRICS = frozenset({"epoch_s", "items_per_s", "step_ms", "data_wait_share", "utilisation_percent", "memory_mib"})
"""Metrics of a report that depend on the machine and the moment: two equal trainings differ in them."""
MOST_MARKS = 1000
"""Steps of an epoch whose time is measured; the median of so many does not move any more."""
FIRST_STEPS = 4
"""Steps that tell how long an epoch will take; the first of them is left out, as it also sets libraries up."""
LONG_EPOCH_S = 30.0
"""An epoch that will take longer is announced: nothing else is heard of the training meanwhile."""

T = TypeVar("T")


class _Marks(Protocol):
    """Moments at which steps ended."""

    def __len__(self) -> int: ...
    def add(self) -> None: ...
    def seconds(self) -> Sequence[float]: ...


class _ClockMarks:
    """Moments of the wall clock."""

    def __init__(self) -> None:
        self._moments: list[float] = []

    def __len__(self) -> int:
        return len(self._moments)

    def add(self) -> None:
        self._moments.append(time.perf_counter())

    def seconds(self) -> Sequence[float]:
        return self._moments


class _EventMarks:
    """Moments of a GPU; reading them waits until the last one is reached."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.current_stream(device)
        self._events: list[torch.cuda.Event] = []

    def __len__(self) -> int:
        return len(self._events)

    def add(self) -> None:
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # torch
        event.record(self._stream)
        self._events.append(event)

    def seconds(self) -> Sequence[float]:
        self._events[-1].synchronize()
        first = self._events[0]
        return [first.elapsed_time(event) / 1000.0 for event in self._events]


class Monitor:
    """Watches the epochs of one rank.

    Args:
        device: where the rank computes.
        announces: whether the log is told how long an epoch will take, when that is long.
        ranks_here: how many ranks of the training share this machine's memory.

    Attributes:
        load: the load of that device, since this object was made.
        estimated_training_s: how long the training part of an epoch takes, told by the first steps; None: unknown yet.
    """

    def __init__(self, device: torch.device, *, announces: bool = True, ranks_here: int = 1) -> None:
        self.load: DeviceLoad = load_of(device, ranks_here)
        self.estimated_training_s: float | None = None
        self._device, self._announces = device, announces
        self._idle_clock = _idle_clock(device)
        self._begin_marks(1)

    def begin(self, steps: int) -> None:
        """Begin an epoch of so many optimizer steps."""
        self._begin_marks(steps)
        self.load.begin()

    def timed(self, batches: Iterator[T]) -> Iterator[T]:
        """Yield the batches, and measure how long each was waited for."""
        while True:
            before = self._idle_clock()
            try:
                batch = next(batches)
            except StopIteration:
                return
            finally:
                self._waited_s += self._idle_clock() - before
            yield batch

    def step_done(self) -> None:
        """Mark the end of a step."""
        if len(self._marks) < MOST_MARKS:
            self._marks.add()
        if self.estimated_training_s is None and len(self._marks) == min(FIRST_STEPS, self._steps):
            self._estimate()
        self.load.look()

    def end(self) -> dict[str, float]:
        """Return what was measured since `begin`.

        Returns:
            `step_ms`: median time of a step; `data_wait_share`: share of the time in which steps stood still for their
            batch, 0 to 1; `utilisation_percent`: how busy the device was; `memory_mib`: its memory that is taken.
            What cannot be measured is left out.
        """
        elapsed = time.perf_counter() - self._began
        measured = {
            "data_wait_share": min(1.0, max(0.0, self._waited_s) / max(elapsed, 1e-9)),
            "memory_mib": self.load.memory_bytes() / 2**20,
        }
        if (busy := self.load.utilisation()) is not None:
            measured["utilisation_percent"] = busy
        moments = self._marks.seconds() if len(self._marks) > 1 else ()
        if moments:
            times = [after - before for before, after in pairwise(moments)]
            measured["step_ms"] = 1000.0 * statistics.median(times)
        return measured

    def _begin_marks(self, steps: int) -> None:
        self._steps = steps
        self._marks: _Marks = _EventMarks(self._device) if self._device.type == "cuda" else _ClockMarks()
        self._waited_s, self._began = 0.0, time.perf_counter()

    def _estimate(self) -> None:
        """Tell the time of an epoch from its first steps; on a GPU this waits for them, once in a training."""
        if len(self._marks) < 2:
            return
        moments = self._marks.seconds()
        self.estimated_training_s = self._steps * (moments[-1] - moments[0]) / (len(moments) - 1)
        if self._announces and self.estimated_training_s > LONG_EPOCH_S:
            logger.info("an epoch of %d steps will train for about %.0f s", self._steps, self.estimated_training_s)


def _idle_clock(device: torch.device) -> Callable[[], float]:
    """A clock that runs while a step waits for its batch.

    A GPU is idle while this thread makes a batch on the CPU. A CPU is not: it makes the batch itself, so that only the
    time counts in which this thread does not compute.
    """
    if device.type == "cuda":
        return time.perf_counter
    return lambda: time.perf_counter() - time.thread_time()
