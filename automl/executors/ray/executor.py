"""Runs trials on Ray: warm worker groups, reports streamed up, one decision down."""

import itertools
from collections.abc import Sequence
from typing import Any, Literal

import ray

from automl.executors.base import Event, Executor, Job
from automl.executors.ray.cluster import Cluster, ClusterError, cpus_per_rank, slots_for
from automl.executors.ray.group import GroupShape, WorkerGroup
from automl.worker import Task
from trainers.reporting import Decision

__all__ = ["ClusterError", "RayExecutor"]

COLLECTIVE_TIMEOUT_S = 300.0
"""How long ranks wait for each other in one operation before the trial is given up."""


class RayExecutor(Executor):
    """As many worker groups as fit; each outlives its trial and takes the next one without a start-up."""

    def __init__(
        self,
        trainer: str,
        data: Any,
        *,
        ranks: int = 1,
        gpus_per_trial: int | None = None,
        concurrency: int | Literal["auto"] = "auto",
        address: str | None = None,
        collective_timeout_s: float = COLLECTIVE_TIMEOUT_S,
    ) -> None:
        """Join or start the cluster and share the data with it.

        Args:
            trainer: reference of the trainer: a task's name, or `module:Class`.
            data: what the trainer's `load` returned; put into Ray's object store, once per machine.
            ranks: processes of one trial.
            gpus_per_trial: 0, or one per rank; None: one per rank where a machine has that many.
            concurrency: trials at once; `auto`: as many as the cluster holds; more share CPUs.
            address: the cluster to join, HOST:PORT or `auto`; None: a private one.
            collective_timeout_s: how long ranks wait for each other.

        Raises:
            ClusterError: the cluster cannot be used, or never holds such a trial.
        """
        self._cluster = Cluster(address)
        try:
            nodes = self._cluster.nodes()
            if gpus_per_trial is None:
                gpus_per_trial = ranks if any(node.gpus >= ranks for node in nodes) else 0
            fitting = slots_for(nodes, ranks, gpus_per_trial)
            self.slots = fitting if concurrency == "auto" else concurrency
            if gpus_per_trial and self.slots > fitting:
                raise ClusterError(
                    f"--concurrency {self.slots} with {gpus_per_trial} GPUs a trial needs "
                    f"{self.slots * gpus_per_trial} GPUs; this cluster holds {fitting} such trials at once"
                )
            self._shape = GroupShape(
                ranks=ranks,
                cpus_per_rank=cpus_per_rank(nodes, self.slots, ranks),
                gpus_per_rank=1 if gpus_per_trial else 0,
                timeout_s=collective_timeout_s,
            )
        except BaseException:
            self._cluster.close()
            raise
        self._trainer = trainer
        self._data = ray.put(data)
        self._groups: list[WorkerGroup] = []
        self._ids = itertools.count()
        self._is_closed = False

    def submit(self, task: Task) -> Job:
        """Give the task to an idle group, or to a new one where none is."""
        job = Job(id=next(self._ids), task=task)
        group = next((group for group in self._groups if group.job is None), None)
        if group is None:
            group = WorkerGroup(self._shape, self._trainer, self._data)
            self._groups.append(group)
        group.run(job)
        return job

    def events(self, timeout_s: float) -> Sequence[Event]:
        """Wait for the first message of any rank, then take all that are there."""
        pending = {ref: group for group in self._groups if group.job for ref in group.pending()}
        if not pending:
            return ()
        ray.wait(list(pending), num_returns=1, timeout=timeout_s)
        ready, _ = ray.wait(list(pending), num_returns=len(pending), timeout=0)
        events = []
        for reference in ready:
            group = pending[reference]
            if group.job is not None:  # else: ended by an earlier message of this round
                events.append(group.receive(reference))
        for group in self._groups:
            group.warn_when_waiting()
            events.append(group.overdue())
        self._groups = [group for group in self._groups if group.is_usable]
        return [event for event in events if event is not None]

    def decide(self, job: Job, decision: Decision) -> None:
        """Send the decision to rank 0; nobody waits for it when the job has failed since its report."""
        group = self._group_of(job)
        if group is not None:
            group.decide(decision)

    def cancel(self, job: Job) -> None:
        """End the processes of the job's group; a later job gets a new one."""
        group = self._group_of(job)
        if group is not None:
            group.close()
            self._groups.remove(group)

    def close(self) -> None:
        """End all groups, and the cluster where it is private."""
        if self._is_closed:
            return
        self._is_closed = True
        for group in self._groups:
            group.close()
        self._groups.clear()
        self._cluster.close()

    def _group_of(self, job: Job) -> WorkerGroup | None:
        return next((group for group in self._groups if group.job == job), None)
