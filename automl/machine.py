"""What this machine has, and how much of it this process may use: containers often allow less than there is."""

import os
from dataclasses import dataclass
from pathlib import Path

import psutil

from trainers.artifact_files import existing_part
from trainers.memory_limits import memory_limit_bytes

__all__ = ["DiskSpace", "Machine", "disk_space", "this_machine"]

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
