"""A worker group: the ranks of one trial after the other, in one placement group, kept warm."""

import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import OutOfMemoryError, RayActorError, RayError
from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from automl.executors.base import Event, Failed, Finished, Job, Reported
from automl.executors.ray.cluster import ClusterError
from automl.executors.ray.rank import Rank
from automl.worker import Failure, Outcome, describe_failure
from trainers.reporting import Decision

__all__ = ["GroupShape", "WorkerGroup"]

_log = logging.getLogger(__name__)

PEER_GRACE_S = 2.0
"""How long the ranks of a failed trial are given to tell their own side before the group is ended."""
WAITS_S, WAITS_AGAIN_S = 20.0, 300.0
"""How long a group may wait for its place before that is said, and before it is said again."""
_ENDED_FOR_MEMORY = ("NODE_OUT_OF_MEMORY", "running low on memory")
_LONGEST_MESSAGE = 400
KEEPS_THE_GROUP = frozenset({"non_finite", "bad_data"})
"""Causes that all ranks find together, so that none of them hangs in a collective operation afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupShape:
    """What one trial occupies.

    Attributes:
        ranks: processes of the group.
        cpus_per_rank: logical CPUs that each rank reserves; may be a fraction.
        gpus_per_rank: 0 or 1.
        timeout_s: how long a collective operation may take.
    """

    ranks: int
    cpus_per_rank: float
    gpus_per_rank: int
    timeout_s: float


class WorkerGroup:
    """Runs one job at a time and lives on after it, unless a rank got lost or may hang."""

    def __init__(self, shape: GroupShape, trainer: str, data: Any) -> None:
        """Ask for the processes; they start while the driver goes on.

        Args:
            shape: what the group occupies.
            trainer: reference of the trainer.
            data: Ray's reference of the loaded data.
        """
        bundle = {"CPU": shape.cpus_per_rank}
        if shape.gpus_per_rank:
            bundle["GPU"] = shape.gpus_per_rank
        self._placement = placement_group([bundle] * shape.ranks, strategy="STRICT_PACK")
        actor = ray.remote(concurrency_groups={"reports": 1, "control": 1})(Rank)  # type: ignore[call-overload]  # an option of actors
        self._ranks = [
            actor.options(
                num_cpus=shape.cpus_per_rank,
                num_gpus=shape.gpus_per_rank,
                scheduling_strategy=PlacementGroupSchedulingStrategy(self._placement, index),
            ).remote()
            for index in range(shape.ranks)
        ]
        threads = max(1, int(shape.cpus_per_rank))
        for rank in self._ranks:
            rank.set_up.remote(trainer, data, threads)
        address = self._ranks[0].open_store.remote(shape.ranks) if shape.ranks > 1 else None
        for index, rank in enumerate(self._ranks):
            rank.join.remote(index, shape.ranks, address, shape.timeout_s, shape.gpus_per_rank > 0)
        self._is_placed = False
        self._warn_at = time.monotonic() + WAITS_S
        self._needs = (shape.cpus_per_rank, shape.gpus_per_rank)
        self.is_usable = True
        self.job: Job | None = None
        self._running: dict[Any, int] = {}
        self._outcomes: dict[int, Outcome | Failure] = {}
        self._report: Any = None
        self._deadline: float | None = None

    def run(self, job: Job) -> None:
        """Start the job on all ranks."""
        self.job = job
        self._outcomes = {}
        self._deadline = None
        self._running = {rank.run.remote(job.task): index for index, rank in enumerate(self._ranks)}
        self._report = self._ranks[0].next_report.remote(None)

    def decide(self, decision: Decision) -> None:
        """Answer the last report and ask for the next one, in one message."""
        self._report = self._ranks[0].next_report.remote(decision)

    def pending(self) -> Sequence[Any]:
        """The references that will tell something."""
        return [*self._running, *([] if self._report is None else [self._report])]

    def receive(self, reference: Any) -> Event | None:
        """Take what a ready reference holds; None when it makes no event yet."""
        assert self.job is not None
        if reference == self._report:
            return self._receive_report(self.job)
        rank = self._running.pop(reference)
        try:
            self._outcomes[rank] = ray.get(reference)
        except RayError as error:
            _raise_when_it_never_started(error)
            self._outcomes[rank] = _gone(error, rank)
        except Exception as error:  # a person's own result may raise anything when it is read
            self._outcomes[rank] = describe_failure(error, rank)
        return self._end()

    def warn_when_waiting(self) -> None:
        """Say when the group has no place yet: the cluster is full of other work, or has lost a machine."""
        if self._is_placed or time.monotonic() < self._warn_at:
            return
        self._is_placed = placement_group_table(self._placement)["state"] == "CREATED"
        if not self._is_placed:
            free = ray.available_resources()  # type: ignore[no-untyped-call]  # Ray's own
            _log.warning(
                "a trial waits for a machine with room for %d times %g CPUs and %d GPUs; free on all: %g and %g",
                len(self._ranks), *self._needs, free.get("CPU", 0.0), free.get("GPU", 0.0),
            )  # fmt: skip
        self._warn_at = time.monotonic() + WAITS_AGAIN_S

    def overdue(self) -> Event | None:
        """The failure of a job whose other ranks have not answered within the grace time."""
        if self.job is None or self._deadline is None or time.monotonic() < self._deadline:
            return None
        return self._fail(self.job)

    def close(self) -> None:
        """End all processes of the group and give back what it occupies."""
        self.is_usable = False
        self.job = None
        for rank in self._ranks:
            ray.kill(rank)
        remove_placement_group(self._placement)

    def _receive_report(self, job: Job) -> Event | None:
        reference, self._report = self._report, None
        try:
            report = ray.get(reference)
        except RayActorError:
            return None  # the rank's own reference tells why
        except Exception as error:  # a person's own report may raise anything when it is read
            self._outcomes[0] = describe_failure(error, rank=0)
            return self._fail(job)
        return None if report is None else Reported(job=job, report=report)

    def _end(self) -> Event | None:
        """The job's end, once every rank has answered, or one has failed alone."""
        assert self.job is not None
        failed = [outcome for outcome in self._outcomes.values() if isinstance(outcome, Failure)]
        if self._running:
            if failed and self._deadline is None:
                self._deadline = time.monotonic() + PEER_GRACE_S
            return None
        if failed:
            return self._fail(self.job)
        return self._free(Finished(job=self.job, outcome=_of_rank_0(self._outcomes)))

    def _fail(self, job: Job) -> Event:
        failures = [outcome for outcome in self._outcomes.values() if isinstance(outcome, Failure)]
        first = next((failure for failure in failures if not failure.is_follow_up), failures[0])
        event = Failed(job=job, failure=first)
        if len(failures) == len(self._ranks) and all(f.cause in KEEPS_THE_GROUP for f in failures):
            return self._free(event)
        self.close()
        return event

    def _free(self, event: Event) -> Event:
        self.job = None
        self._report = None
        return event


def _of_rank_0(outcomes: dict[int, Outcome | Failure]) -> Outcome:
    outcome = outcomes[0]
    assert not isinstance(outcome, Failure)
    return outcome


def _raise_when_it_never_started(error: RayError) -> None:
    """A worker that cannot even be made is no fault of a trial: every trial would meet the same."""
    if isinstance(error, RayActorError) and "creation task" in str(error):
        raise ClusterError(f"the workers cannot be started: {_in_a_line(error)}") from error


def _gone(error: RayError, rank: int) -> Failure:
    """A rank whose process or machine is gone; Ray says so when it has ended it for want of memory."""
    is_oom = isinstance(error, OutOfMemoryError) or any(sign in str(error) for sign in _ENDED_FOR_MEMORY)
    return Failure(cause="oom" if is_oom else "lost", error=type(error).__name__, message=_in_a_line(error), rank=rank)


def _in_a_line(error: RayError) -> str:
    """Ray's explanation without colours and line breaks, as much of it as helps."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    return " ".join(text.split())[:_LONGEST_MESSAGE]
