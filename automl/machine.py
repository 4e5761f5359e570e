"""What this machine has, and how much of it this process may use: containers often allow less than there is."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import psutil

from trainers.artifact_files import existing_part

__all__ = ["DiskSpace", "Machine", "disk_space", "memory_limit_bytes", "this_machine"]

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_GPUS_OF_THE_DRIVER = Path("/proc/driver/nvidia/gpus")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine as one process sees it.

    Attributes:
        cpus: logical CPUs.
        usable_cpus: those that this process may run on.
        memory_bytes: all memory.
        memory_limit_bytes: what a container or the system's own limit leaves of it; None: no limit.
        gpus: NVIDIA GPUs that the driver has, whether or not this process may see them.
    """

    cpus: int
    usable_cpus: int
    memory_bytes: int
    memory_limit_bytes: int | None
    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskSpace:
    """How full the file system of a folder is.

    Attributes:
        folder: the deepest part of the path that is there.
        size_bytes: size of the file system.
        free_bytes: what this user may still write.
    """

    folder: Path
    size_bytes: int
    free_bytes: int

    @property
    def used(self) -> float:
        """The share that is in use or kept for others, 0 to 1, as Ray counts it."""
        return 1.0 - self.free_bytes / self.size_bytes if self.size_bytes else 0.0


def this_machine() -> Machine:
    """Look at this machine."""
    cpus = os.cpu_count() or 1
    total = psutil.virtual_memory().total
    limit = memory_limit_bytes()
    return Machine(
        cpus=cpus,
        usable_cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cpus,
        memory_bytes=total,
        memory_limit_bytes=limit if limit is not None and limit < total else None,
        gpus=len(list(_GPUS_OF_THE_DRIVER.iterdir())) if _GPUS_OF_THE_DRIVER.is_dir() else 0,
    )


def memory_limit_bytes(root: Path = _CGROUPS, own: Path = _OWN_CGROUPS) -> int | None:
    """The smallest limit of memory of this process's control groups, of both versions of Linux's; None: none.

    Args:
        root: where the control groups are mounted.
        own: the list of this process's groups, see cgroups(7).
    """
    return min((limit for file in _limit_files(root, own) if (limit := _limit_in(file)) is not None), default=None)


def disk_space(folder: Path) -> DiskSpace:
    """How full the file system is that holds a folder, or would hold it.

    Raises:
        OSError: it cannot be asked, such as a mount whose server is gone.
    """
    existing = existing_part(folder)
    facts = os.statvfs(existing)
    return DiskSpace(
        folder=existing, size_bytes=facts.f_blocks * facts.f_frsize, free_bytes=facts.f_bavail * facts.f_frsize
    )


def _limit_files(root: Path, own: Path) -> Iterator[Path]:
    """The files that hold a limit: of each group and of all above it, up to what this container sees."""
    lines = own.read_text().splitlines() if own.exists() else []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        base, name = (root / "memory", "memory.limit_in_bytes") if controllers else (root, "memory.max")
        group = PurePosixPath(path.lstrip("/"))
        for part in (group, *group.parents):
            yield base / part / name


def _limit_in(file: Path) -> int | None:
    try:
        text = file.read_text().strip()
    except OSError:
        return None  # a group above the container's own is not shown here
    return int(text) if text.isdecimal() else None  # `max`: no limit
