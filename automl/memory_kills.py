"""How many processes the kernel of this machine has ended for want of memory: whoever looks twice sees new ones."""

from pathlib import Path

__all__ = ["memory_kills"]


def memory_kills() -> int:
    """How many processes the kernel of this machine has ended for want of memory since it was started.

    Those in a container or control group of their own count, too; 0 where the kernel does not tell.
    """
    try:
        lines = Path("/proc/vmstat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
