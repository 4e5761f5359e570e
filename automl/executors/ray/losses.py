"""Why a rank's process is gone: lost, or ended for want of memory, by Ray or by the machine's kernel."""

import re
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import OutOfMemoryError, RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from automl.memory_kills import memory_kills
from automl.worker import Failure

__all__ = ["ask_for_memory_kills", "died_at_birth", "ended_by_kernel", "in_a_line", "loss", "plain"]

_ENDED_FOR_MEMORY = ("NODE_OUT_OF_MEMORY", "running low on memory")
_LONGEST_MESSAGE = 400


def loss(error: RayError, rank: int | None, host: str) -> Failure:
    """A rank whose process or machine is gone; Ray says so when it has ended it for want of memory.

    Args:
        error: what Ray has raised.
        rank: which one; None: a trial without ranks.
        host: its machine; empty: unknown.
    """
    is_oom = isinstance(error, OutOfMemoryError) or any(sign in str(error) for sign in _ENDED_FOR_MEMORY)
    return Failure(
        cause="oom" if is_oom else "lost",
        error=type(error).__name__,
        message=in_a_line(error),
        rank=rank,
        host=host,
        is_memory_kill=is_oom,
    )


def ended_by_kernel(rank: int, host: str) -> Failure:
    """A rank whose process the kernel has ended for want of memory, which Ray cannot tell from any other end."""
    return Failure(
        cause="oom",
        error="OutOfMemoryError",
        message="the machine's kernel ended a process for want of memory at that moment; give trials more memory, "
        "or let fewer run at once (--memory-per-trial, --concurrency)",
        rank=rank,
        host=host,
        is_memory_kill=True,
    )


def died_at_birth(error: RayError) -> bool:
    """Whether a process of ours could not even be made."""
    return isinstance(error, RayActorError) and "creation task" in str(error)


def ask_for_memory_kills(node_id: str, counter: Path) -> Any:
    """Ask a machine for the present count of a counter of `memory_kills`; return Ray's reference of the answer."""
    task: Any = ray.remote(memory_kills)
    place = NodeAffinitySchedulingStrategy(node_id, soft=False)
    return task.options(num_cpus=0, max_retries=0, scheduling_strategy=place).remote(counter)


def plain(error: RayError) -> str:
    """Ray's explanation, which may hold the traceback of another process, without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error))


def in_a_line(error: RayError) -> str:
    """Ray's explanation without colours, line breaks and names of its own parts: the whole sentences that help."""
    text = " ".join(plain(error).split())
    detail = re.search(r"Worker exit detail: (.+)", text)
    text = re.sub(r" (class_name|actor_id|pid|name|namespace|ip|job_id): \S*", "", detail[1] if detail else text)
    if len(text) <= _LONGEST_MESSAGE:
        return text
    end = text.rfind(". ", 0, _LONGEST_MESSAGE)
    return text[: end + 1] if end > 0 else f"{text[:_LONGEST_MESSAGE]}..."
