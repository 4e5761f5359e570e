"""One task inside a process: run it, and turn whatever goes wrong into data."""

import socket
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from automl.memory_kills import MemoryKills, memory_kills
from search_spaces.own_code import OWN_CODE_ERRORS
from trainers.config import EvaluateTask, TrainTask
from trainers.errors import FailureCause
from trainers.failures import explain
from trainers.loader_errors import end_of_loader_worker
from trainers.reporting import Reporter, TrialResult
from trainers.trainer import Trainer

if TYPE_CHECKING:
    from trainers.distributed import Ranks

__all__ = ["Failure", "Outcome", "Task", "describe_failure", "run_task"]

Task: TypeAlias = TrainTask | EvaluateTask
Outcome: TypeAlias = TrialResult | Mapping[str, float]
"""What a task gives: a training its result, an evaluation its metrics."""


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
        is_memory_kill: whether the machine's memory was full and a process was ended for it, rather than told by its
            device; then `cause` is `oom`.
        is_of_network: whether the network by itself needs more memory than there is, so that smaller batches do not
            help; then `cause` is `oom`.
    """

    cause: FailureCause
    error: str
    message: str
    traceback: str = ""
    rank: int | None = None
    host: str = ""
    is_follow_up: bool = False
    is_memory_kill: bool = False
    is_of_network: bool = False

    def __str__(self) -> str:
        """Return one line: cause, rank, host and message."""
        place = "" if self.rank is None else f" on rank {self.rank}"
        host = f" of {self.host}" if self.host else ""
        return f"{self.cause}{place}{host}: {self.error}: {self.message}"


def run_task(task: Task, trainer: Trainer, data: Any, ranks: "Ranks", reporter: Reporter) -> Outcome | Failure:
    """Train or evaluate; an exception becomes a Failure, so that it crosses every process border.

    Ranks that were given different tasks would wait for each other in different steps, so they compare first.
    """
    kills_before = memory_kills()
    try:
        if ranks.world_size > 1:
            ranks.check_same("task", task.model_dump_json())
        if isinstance(task, EvaluateTask):
            return trainer.evaluate(task, data, ranks)
        return trainer.fit(task, data, ranks, reporter)
    except OWN_CODE_ERRORS as error:  # a script's `sys.exit` would end the process, and nobody knew why
        failure = describe_failure(error, ranks.rank)
        end = end_of_loader_worker(error)
        return failure if end is None else _of_loader_worker(failure, end, _has_killed_since(kills_before))


def describe_failure(error: Exception | SystemExit, rank: int | None) -> Failure:
    """Turn an exception into data, with its cause.

    Args:
        error: what came out of a task.
        rank: where; None: not on a certain rank.
    """
    explained = explain(error)
    return Failure(
        cause=explained.cause,
        error=explained.error,
        message=explained.message,
        traceback="".join(traceback.format_exception(error)),
        rank=rank,
        host=socket.gethostname(),
        is_follow_up=explained.is_consequence,
        is_of_network=explained.is_of_network,
    )


def _has_killed_since(earlier: MemoryKills) -> bool:
    return memory_kills(earlier.counter).count > earlier.count


def _of_loader_worker(failure: Failure, end: Literal["killed", "gone"], has_killed: bool) -> Failure:
    """A failure by the end of a DataLoader's worker: for want of memory, if the kernel has ended a process meanwhile.

    Nothing in a training sends SIGKILL, so that a worker that was killed otherwise is lost like any process.
    """
    if has_killed:
        advice = (
            "the machine's kernel ended a process for want of memory at that moment; give trials more memory, fewer "
            "DataLoader workers, or let fewer run at once (--memory-per-trial, --concurrency)"
        )
        return replace(failure, cause="oom", message=f"{failure.message.strip()}; {advice}", is_memory_kill=True)
    if end == "killed":
        return replace(failure, cause="lost", message=f"{failure.message.strip()}; somebody has ended it from outside")
    return failure
