"""What the worker groups of one executor have in common, and what they tell it."""

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from automl.executors.base import Job
from automl.executors.ray.placement import Demand
from automl.executors.ray.watch import Limits
from automl.worker import Failure
from trainers.config import Precision

if TYPE_CHECKING:
    from automl.executors.ray.group import WorkerGroup

__all__ = ["Crew", "GroupUnusableError", "Message", "MessageKind"]

MessageKind: TypeAlias = Literal["answer", "pulse", "kills", "end"]
"""What a message is about: the answer to a task or a decision, how a rank fares, how many processes the kernel of its
machine has ended for want of memory, the end of a process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """An answer of a worker process, as it comes in: to be received by its group in the driver's thread."""

    group: "WorkerGroup"
    job: Job | None
    kind: MessageKind
    rank: int
    answer: "Future[Any]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """What all groups of one executor are made for.

    Attributes:
        demand: what a trial occupies.
        trainer: reference of the trainer.
        data: Ray's reference of the loaded data.
        precision: what the search trains with.
        collective_s: how long ranks wait for each other in one operation.
        limits: how long a trial may take.
        versions: what the driver runs with.
        post: takes messages, from any thread.
    """

    demand: Demand
    trainer: str
    data: Any
    precision: Precision
    collective_s: float
    limits: Limits
    versions: Mapping[str, str]
    post: Callable[[Message], None]


class GroupUnusableError(Exception):
    """The processes of a group cannot run any task of this search; no fault of the job.

    Attributes:
        job: what it was given, and has not begun.
        failure: why.
        nodes: identities of the machines where every new process would meet the same.
        machines: identities of all machines of the group, one of which may be gone.
    """

    def __init__(self, job: Job, failure: Failure, nodes: Collection[str], machines: Collection[str]) -> None:
        super().__init__(str(failure))
        self.job = job
        self.failure = failure
        self.nodes = frozenset(nodes)
        self.machines = frozenset(machines)
