"""The plug point of execution: an executor runs tasks on worker processes and streams what they say."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeAlias

from automl.worker import Failure, Outcome, Task
from trainers.reporting import Decision, Report

__all__ = ["Event", "Executor", "Failed", "Finished", "Job", "Reported"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A submitted task; `id` is unique within the executor."""

    id: int
    task: Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """A training has finished an epoch and waits for `Executor.decide`."""

    job: Job
    report: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A task has ended by itself or as it was told."""

    job: Job
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A task has ended badly; everything it held is released."""

    job: Job
    failure: Failure


Event: TypeAlias = Reported | Finished | Failed


class Executor(ABC):
    """Runs up to `slots` tasks at once; used by one thread, but for `wake`.

    The life of a job: `submit`; any number of `Reported` events, each answered by `decide`; one `Finished` or
    `Failed`. A cancelled job gives no further event.

    Attributes:
        wants_more: whether more tasks may be submitted soon; while not, no free place is kept or asked for.
    """

    wants_more: bool = True

    @property
    @abstractmethod
    def slots(self) -> int:
        """Tasks that can be under way now, running ones included; may change with each `events`, and be 0 for a while.

        More may be submitted; they wait for a place.
        """

    @property
    @abstractmethod
    def concurrency(self) -> int:
        """Tasks that are meant to run at the same time once all have their places, at least 1."""

    @abstractmethod
    def submit(self, task: Task) -> Job:
        """Start a task without waiting for anything."""

    @abstractmethod
    def events(self, timeout_s: float) -> Sequence[Event]:
        """What has happened since the last call.

        Waits up to `timeout_s` for the first event, and no longer when `slots` changes or `wake` is called. To be
        called regularly, also while nothing runs: this is when an executor looks after its processes.

        Raises:
            WorkersLostError: there will be no event any more, as what runs the tasks is gone.
        """

    @abstractmethod
    def wake(self) -> None:
        """Make the `events` that waits, or the next one, return at once; may be called from any thread."""

    @abstractmethod
    def decide(self, job: Job, decision: Decision) -> None:
        """Answer the job's last report."""

    @abstractmethod
    def cancel(self, job: Job) -> None:
        """End a job at once, without a result; its processes are ended or freed."""

    @abstractmethod
    def close(self) -> None:
        """Cancel what runs and release all processes; may be called twice."""

    def __enter__(self) -> Self:
        """Return the executor itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the executor."""
        self.close()
