"""Who owns a trial: a name for this process that other processes can check for life.

A host name alone proves nothing (two containers may share it, a machine may be started again), so the name also
holds the boot of the kernel, the pid namespace and the start time of the process.
"""

import os
import socket
from functools import cache
from pathlib import Path

import psutil

__all__ = ["host_and_pid", "is_alive", "process_identity"]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")
_START_TIME_FIELD = 19
"""Position of `starttime` in /proc/<pid>/stat after the command's closing bracket; see proc(5)."""


def process_identity() -> str:
    """Name this process as `host/boot-id/pid-namespace/pid/start-time`."""
    return _identity_of(os.getpid())


def host_and_pid(owner: str) -> tuple[str, int] | None:
    """Read the host and the pid from an owner's name; None when the name is not one of ours."""
    match owner.split("/"):
        case [host, _, _, pid, _] if pid.isdecimal():
            return host, int(pid)
        case _:
            return None


def is_alive(owner: str) -> bool | None:
    """Tell whether the process of that name still runs.

    Args:
        owner: what `process_identity` returned there.

    Returns:
        True or False when the owner lives on this kernel and in this pid namespace; None when it is somewhere else,
        or the name is not one of ours: then only the end of its lease tells.
    """
    if owner == process_identity():
        return True
    match owner.split("/"):
        case [_, boot, namespace, pid, start] if (boot, namespace) == _place() and pid.isdecimal():
            return _runs(int(pid), start)
        case _:
            return None


@cache  # for each pid: a forked child is another process
def _identity_of(pid: int) -> str:
    return "/".join((socket.gethostname(), *_place(), str(pid), _start_time(pid)))


@cache
def _place() -> tuple[str, str]:
    boot = _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else f"{psutil.boot_time():.0f}"
    namespace = str(_PID_NAMESPACE.stat().st_ino) if _PID_NAMESPACE.exists() else "0"
    return boot, namespace


def _runs(pid: int, start: str) -> bool:
    try:
        # A zombie holds its number until its parent asks for it, but it will never report again.
        return _start_time(pid) == start and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _start_time(pid: int) -> str:
    # The kernel's own ticks since boot: unlike a wall-clock time they do not move when the clock is set.
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[_START_TIME_FIELD]
    except (FileNotFoundError, ProcessLookupError):
        return f"{psutil.Process(pid).create_time():.2f}"
