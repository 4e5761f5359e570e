"""Whether a running trial still moves: a pure judgement of what its ranks tell about themselves every few seconds."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from automl.memory_kills import MemoryKills

__all__ = ["Limits", "Pulse", "Verdict", "Watch"]

MOVING_CPU_SHARE = 0.1
"""A rank whose processes compute so much of the time moves, even if it stays in one call."""
MOVING_THREAD_SHARE = 0.001
"""So does one whose own thread computes so much of it: a loop that mostly waits for its data, and is seen in that wait
each time, needs more, and one that only looks every few seconds whether it may go on needs less."""
SET_UP_S = 300.0
"""How long a rank may stand still before it begins, at least: it may wait for its data, or for a file system."""
SILENT_S = 6.0
"""A rank that has told nothing for so long, while the driver listened, does not answer any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """What a rank tells about itself while it works on a task.

    Attributes:
        place: where its thread is at the moment, as a value to compare; None while it works on nothing.
        stack: the same in words, innermost call last.
        waits_for_peers: whether it is inside an operation of all ranks.
        cpu_s: CPU time of the process and its children, in seconds.
        thread_cpu_s: CPU time of the thread that works on the task, in seconds.
        memory_kills: how many processes around it the kernel has ended for want of memory.
    """

    place: int | None
    stack: str
    waits_for_peers: bool
    cpu_s: float
    thread_cpu_s: float
    memory_kills: MemoryKills


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a trial may take, in seconds; None: for ever.

    Attributes:
        trial_s: from its begin on the ranks to its end.
        stall_s: without any movement of any rank.
    """

    trial_s: float | None = None
    stall_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Why a trial is ended.

    Attributes:
        reason: in words.
        rank: the rank that holds it up, as far as can be told.
        stack: where that rank is.
    """

    reason: str
    rank: int
    stack: str


@dataclass(slots=True)
class _Seen:
    """The last pulse of a rank, and the last one with which it moved."""

    pulse: Pulse
    told_at: float
    moved: Pulse
    moved_at: float

    def has_moved(self, pulse: Pulse, now: float) -> bool:
        passed_s = now - self.moved_at
        return (
            pulse.place != self.moved.place
            or pulse.cpu_s - self.moved.cpu_s >= MOVING_CPU_SHARE * passed_s
            or pulse.thread_cpu_s - self.moved.thread_cpu_s >= MOVING_THREAD_SHARE * passed_s
        )


@dataclass(slots=True)
class Watch:
    """Follows one trial; all times are seconds of one clock.

    A trial stands still when no rank has moved for long enough: one rank that moves may be what the others wait for. A
    rank moves when its thread is elsewhere, or computes. While the trial waits for the driver's decision it may stand.
    """

    limits: Limits
    ranks: int
    made_at: float
    _began_at: float | None = None
    _asked_at: float | None = None
    _moved_at: float = field(init=False)
    _seen: dict[int, _Seen] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Count from the beginning."""
        self._moved_at = self.made_at

    def place(self, now: float) -> None:
        """The ranks have their places by now: waiting for them is no standstill."""
        self._moved_at = now

    def begin(self, now: float) -> None:
        """The ranks have begun to work."""
        self._began_at = self._moved_at = now

    def excuse(self, seconds: float) -> None:
        """Do not count a time in which nobody could look, as the driver itself stood still."""
        self._moved_at += seconds
        if self._began_at is not None:
            self._began_at += seconds
        for seen in self._seen.values():
            seen.told_at += seconds

    def report(self, now: float) -> None:
        """The trial waits for the driver's decision: no time of its own."""
        self._asked_at = now

    def decide(self, now: float) -> None:
        """The trial has its decision."""
        if self._asked_at is not None and self._began_at is not None:
            self._began_at += now - self._asked_at
        self._asked_at, self._moved_at = None, now

    def note(self, rank: int, pulse: Pulse, now: float) -> None:
        """Take what a rank tells."""
        seen = self._seen.get(rank)
        if seen is None:
            self._seen[rank] = _Seen(pulse=pulse, told_at=now, moved=pulse, moved_at=now)
            return
        if seen.has_moved(pulse, now):
            seen.moved, seen.moved_at = pulse, now
            self._moved_at = max(self._moved_at, now)
        seen.pulse, seen.told_at = pulse, now

    def verdict(self, now: float) -> Verdict | None:
        """Why to end the trial now; None: it may go on."""
        limits = self.limits
        if self._asked_at is not None:
            return None
        if limits.trial_s is not None and self._began_at is not None and now - self._began_at > limits.trial_s:
            return self._against(f"the trial took longer than {limits.trial_s:g} s (--trial-timeout)", now)
        stood_s = now - self._moved_at
        if limits.stall_s is None:
            return None
        if stood_s > (limits.stall_s if self._began_at is not None else max(limits.stall_s, SET_UP_S)):
            return self._against(f"the trial has stood still for {stood_s:.0f} s (--stall-timeout)", now)
        return None

    def _against(self, reason: str, now: float) -> Verdict:
        silent = self._silent(now)
        rank = self._culprit(silent)
        seen = self._seen.get(rank)
        if seen is None or rank in silent:
            return Verdict(reason=f"{reason}; rank {rank} does not answer", rank=rank, stack="")
        calls = [line.strip() for line in seen.pulse.stack.splitlines() if line.lstrip().startswith("File ")]
        place = f"; rank {rank} is at {calls[-1]}" if calls else ""
        return Verdict(reason=reason + place, rank=rank, stack=seen.pulse.stack)

    def _culprit(self, silent: Sequence[int]) -> int:
        """The rank that the others wait for: one that does not answer, else one that waits for nobody itself."""
        busy = [rank for rank, seen in sorted(self._seen.items()) if not seen.pulse.waits_for_peers]
        return next(iter([*silent, *busy]), 0)

    def _silent(self, now: float) -> Sequence[int]:
        heard = {rank for rank, seen in self._seen.items() if now - seen.told_at < SILENT_S}
        return [rank for rank in range(self.ranks) if rank not in heard]
