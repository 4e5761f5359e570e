"""A limit of memory that the kernel keeps for chosen processes: a control group of version 1, which root can make."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers.commands import until

__all__ = ["memory_limit_for"]

_GROUPS = Path("/sys/fs/cgroup/memory")


@contextmanager
def memory_limit_for(pid: int, more_bytes: int) -> Iterator[None]:
    """Let a process, and what it starts, take so much more memory and no more; skip the test where nobody can."""
    if not os.access(_GROUPS / "memory.limit_in_bytes", os.W_OK):
        pytest.skip("control groups of version 1 for memory cannot be made here")
    group = _GROUPS / f"automl-test-{os.getpid()}-{pid}"
    group.mkdir()
    try:
        # What the process has taken before stays where it was accounted; only what is new counts.
        (group / "memory.limit_in_bytes").write_text(str(more_bytes))
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        until(lambda: _is_removed(group), 10.0, "the end of the control group")


def _is_removed(group: Path) -> bool:
    """Let who is left in the group go, and remove it; what is ending in it still may need a moment."""
    try:
        for survivor in (group / "cgroup.procs").read_text().split():
            (_GROUPS / "cgroup.procs").write_text(survivor)
        group.rmdir()
    except OSError:
        return False
    return True
