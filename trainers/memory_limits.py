"""How much memory this process may take: containers and the system's own limits often leave less than there is."""

import platform
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

__all__ = ["memory_limit_bytes", "memory_owner"]

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def memory_limit_bytes(root: Path = _CGROUPS, own: Path = _OWN_CGROUPS) -> int | None:
    """The smallest limit of memory of this process's control groups, of both versions of Linux's; None: none.

    Args:
        root: where the control groups are mounted.
        own: the list of this process's groups, see cgroups(7).
    """
    return min((limit for file in _limit_files(root, own) if (limit := _limit_in(file)) is not None), default=None)


def memory_owner() -> str:
    """Name the machine, or the container on it, whose memory this process takes: equal where processes share it.

    Machines may have the same name, and containers on one of them share the system that was started there.
    """
    boot = _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""
    return f"{platform.node()} {boot}".strip()


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
