"""How many processes the kernel has ended for want of memory: whoever looks twice sees new ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainers.control_groups import CGROUPS, OWN_CGROUPS, memory_group_files

__all__ = ["MemoryKills", "memory_kills"]

_WHOLE_MACHINE = Path("/proc/vmstat")


@dataclass(frozen=True, slots=True)
class MemoryKills:
    """What a counter of the kernel said at one moment.

    Attributes:
        counter: the file of the count.
        count: processes that have been ended for want of memory.
    """

    counter: Path
    count: int


def memory_kills(counter: Path | None = None, *, root: Path = CGROUPS, own: Path = OWN_CGROUPS) -> MemoryKills:
    """How many processes the kernel has ended for want of memory, nearest to this process.

    The kernel counts them in the control group of each process that it ends, whatever was full, so that a foreign
    container's are not taken for ours; where groups cannot be read, those of the whole machine are counted.

    Args:
        counter: count in this file of an earlier answer, of another process on this machine; None: in the nearest one.
        root: where the control groups are mounted.
        own: the list of this process's groups, see cgroups(7).
    """
    files = _counters(root, own) if counter is None else [counter]
    known = ((file, count) for file in files if (count := _count_in(file)) is not None)
    return MemoryKills(*next(known, (counter or _WHOLE_MACHINE, 0)))


def _counters(root: Path, own: Path) -> Iterator[Path]:
    yield from memory_group_files("memory.oom_control", "memory.events", root, own)
    yield _WHOLE_MACHINE


def _count_in(file: Path) -> int | None:
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except OSError:
        return None  # no such group, or one that is not shown here
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)
