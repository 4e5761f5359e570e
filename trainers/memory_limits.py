"""How much memory this process may take: containers and the system's own limits often leave less than there is."""

import platform
from pathlib import Path

from trainers.control_groups import CGROUPS, OWN_CGROUPS, memory_group_files

__all__ = ["memory_limit_bytes", "memory_owner"]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def memory_limit_bytes(root: Path = CGROUPS, own: Path = OWN_CGROUPS) -> int | None:
    """The smallest limit of memory of this process's control groups, of both versions of Linux's; None: none.

    Args:
        root: where the control groups are mounted.
        own: the list of this process's groups, see cgroups(7).
    """
    files = memory_group_files("memory.limit_in_bytes", "memory.max", root, own)
    return min((limit for file in files if (limit := _limit_in(file)) is not None), default=None)


def memory_owner() -> str:
    """Name the machine, or the container on it, whose memory this process takes: equal where processes share it.

    Machines may have the same name, and containers on one of them share the system that was started there.
    """
    boot = _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""
    return f"{platform.node()} {boot}".strip()


def _limit_in(file: Path) -> int | None:
    try:
        text = file.read_text().strip()
    except OSError:
        return None  # a group above the container's own is not shown here
    return int(text) if text.isdecimal() else None  # `max`: no limit
