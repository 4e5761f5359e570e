"""Where Linux tells of the memory of this process's control groups: containers and systems make such groups."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

__all__ = ["CGROUPS", "OWN_CGROUPS", "memory_group_files"]

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")


def memory_group_files(name_v1: str, name_v2: str, root: Path, own: Path) -> Iterator[Path]:
    """One file of each group and of all above it, up to what this container sees, the nearest first.

    Not all of them exist: a container may see its own group as the root, and not those above.

    Args:
        name_v1: the file's name in control groups of version 1.
        name_v2: and of version 2.
        root: where the control groups are mounted.
        own: the list of this process's groups, see cgroups(7).
    """
    lines = own.read_text().splitlines() if own.exists() else []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        base, name = (root / "memory", name_v1) if controllers else (root, name_v2)
        group = PurePosixPath(path.lstrip("/"))
        for part in (group, *group.parents):
            yield base / part / name
