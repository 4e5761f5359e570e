"""One task inside a process: run it, and turn whatever goes wrong into data."""

import socket
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from trainers.config import EvaluateTask, TrainTask
from trainers.errors import FailureCause, PeerFailedError, TrialError, full_disk
from trainers.loader_errors import cuda_in_loader_worker
from trainers.reporting import Reporter, TrialResult
from trainers.trainer import Trainer

if TYPE_CHECKING:
    from trainers.distributed import Ranks

__all__ = ["Failure", "Outcome", "Task", "describe_failure", "run_task"]

Task: TypeAlias = TrainTask | EvaluateTask
Outcome: TypeAlias = TrialResult | Mapping[str, float]
"""What a task gives: a training its result, an evaluation its metrics."""

_PEER_IS_GONE = (
    "connection closed by peer",
    "connection reset",
    "broken pipe",
    "connection refused",
    "remote process exited",
)
"""What torch's process groups say on a rank whose peer has left: a consequence, not a cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a task ended badly.

    Attributes:
        cause: the word that is stored on the trial.
        error: class of the exception.
        message: its text.
        traceback: where it happened; empty when the process is gone.
        rank: the rank it happened on; None when it concerns them all.
        host: name of that machine.
        is_follow_up: whether it only tells that another rank is gone.
    """

    cause: FailureCause
    error: str
    message: str
    traceback: str = ""
    rank: int | None = None
    host: str = ""
    is_follow_up: bool = False

    @property
    def is_memory_kill(self) -> bool:
        """Whether the machine's memory was full and the process was ended for it, rather than told by its device."""
        return self.cause == "oom" and not self.traceback

    def __str__(self) -> str:
        """Return one line: cause, rank, host and message."""
        place = "" if self.rank is None else f" on rank {self.rank}"
        host = f" of {self.host}" if self.host else ""
        return f"{self.cause}{place}{host}: {self.error}: {self.message}"


def run_task(task: Task, trainer: Trainer, data: Any, ranks: "Ranks", reporter: Reporter) -> Outcome | Failure:
    """Train or evaluate; an exception becomes a Failure, so that it crosses every process border.

    Ranks that were given different tasks would wait for each other in different steps, so they compare first.
    """
    try:
        if ranks.world_size > 1:
            ranks.check_same("task", task.model_dump_json())
        if isinstance(task, EvaluateTask):
            return trainer.evaluate(task, data, ranks)
        return trainer.fit(task, data, ranks, reporter)
    except (Exception, SystemExit) as error:  # a script's `sys.exit` would end the process, and nobody knew why
        return describe_failure(error, ranks.rank)


def describe_failure(error: Exception | SystemExit, rank: int | None) -> Failure:
    """Name the cause of an exception: a trainer's own errors know it, anything else is the user's code."""
    reason = full_disk(error)
    shown = reason or error
    advice = cuda_in_loader_worker(error)
    message = advice or str(shown) or type(shown).__name__
    is_follow_up = isinstance(error, PeerFailedError) or any(sign in message.lower() for sign in _PEER_IS_GONE)
    cause: FailureCause = "rank_error" if is_follow_up else "user_error"
    if isinstance(error, TrialError) and advice is None:
        cause = error.cause
    if reason is not None:
        cause = "disk_full"
    return Failure(
        cause=cause,
        error=type(shown).__name__,
        message=message,
        traceback="".join(traceback.format_exception(error)),
        rank=rank,
        host=socket.gethostname(),
        is_follow_up=is_follow_up,
    )
