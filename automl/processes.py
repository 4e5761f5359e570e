"""Questions about processes of this machine."""

import psutil

__all__ = ["is_at_work"]


def is_at_work(process: psutil.Process) -> bool:
    """Whether a process runs: it has not ended, nor is it a dead one that its parent has not asked after."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
