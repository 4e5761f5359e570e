"""Runs trials on Ray: warm worker groups, reports streamed up, one decision down."""

import itertools
import logging
import queue
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import ray

from automl.errors import WorkersLostError
from automl.executors.base import Event, Executor, Failed, Job, Reported
from automl.executors.ray.cluster import Cluster, ClusterError
from automl.executors.ray.crew import Crew, GroupUnusableError, Message
from automl.executors.ray.group import WorkerGroup
from automl.executors.ray.machines import Machines
from automl.executors.ray.placement import Request
from automl.executors.ray.reservation import Reservation
from automl.executors.ray.versions import own_versions
from automl.executors.ray.watch import Limits
from automl.worker import Task
from trainers.config import Precision
from trainers.reporting import Decision

__all__ = ["ClusterError", "RayExecutor"]

COLLECTIVE_TIMEOUT_S = 300.0
"""How long ranks wait for each other in one operation before the trial is given up."""
TEND_S = 0.5
"""How often groups are looked after while no message comes."""
ALIVE_S = 0.5
"""How often the cluster itself is looked after: without it most of Ray's calls would wait for a minute."""
EAGER_S, EAGER_FOR_S = 0.02, 2.0
"""How often a new group is looked after, and for how long, as it mostly has its place at once."""
REST_S, SHORT_REST_S = 300.0, 1.0
"""How long a group without work stays warm, and how long when other work waits for its place."""
GIVES_WAY_S = 3.0
"""How long nothing is asked for after a place was given up: Ray looks after those that wait once a second only."""
MAX_STARTS = 3
"""How often a task that has not begun is given to another group."""

_log = logging.getLogger(__name__)


class RayExecutor(Executor):
    """As many worker groups as fit; each outlives its trial and takes the next one without a start-up.

    Groups are asked for as they are needed: while more tasks may come, there is at most one without work for each that
    works, or one in all; and none otherwise, but for those that are warm.
    """

    def __init__(
        self,
        trainer: str,
        data: Any,
        *,
        request: Request | None = None,
        concurrency: int | Literal["auto"] = "auto",
        address: str | None = None,
        wait_for_nodes_s: float = 0.0,
        precision: Precision = "auto",
        limits: Limits | None = None,
        check: Callable[[], None] = lambda: None,
        collective_timeout_s: float = COLLECTIVE_TIMEOUT_S,
    ) -> None:
        """Join or start the cluster and share the data with it.

        Args:
            trainer: reference of the trainer: a task's name, or `module:Class`.
            data: what the trainer's `load` returned; put into Ray's object store, once per machine.
            request: what one trial asks for; None: one process.
            concurrency: trials at once; `auto`: as many as the cluster holds; more share CPUs.
            address: the cluster to join, HOST:PORT or `auto`; None: a private one.
            wait_for_nodes_s: how long to wait for machines that can hold a trial.
            precision: what the search trains with; workers whose device cannot are not used.
            limits: how long a trial may take; None: for ever.
            check: is called while machines are waited for; ends that by an exception.
            collective_timeout_s: how long ranks wait for each other.

        Raises:
            ClusterError: the cluster cannot be used, or never holds such a trial.
        """
        self._is_closed = False
        self._groups: list[WorkerGroup] = []
        self._messages: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._ids = itertools.count()
        self._starts: dict[int, int] = {}
        self._unusable: ClusterError | None = None
        self._has_worked = False
        self._looked_at = self._alive_at = 0.0
        self._gives_way_until = 0.0
        self._cluster = Cluster(address)
        try:
            self._machines = Machines(self._cluster, request or Request(), concurrency, wait_for_nodes_s, check)
            self._crew = Crew(
                demand=self._machines.demand,
                trainer=trainer,
                data=ray.put(data),
                precision=precision,
                collective_s=collective_timeout_s,
                limits=limits or Limits(),
                versions=own_versions(),
                post=self._messages.put,
            )
            self._ask_for_groups()
        except BaseException:
            self._cluster.close()
            raise

    @property
    def slots(self) -> int:
        """Groups that have their place, or a job already."""
        return sum(group.is_placed or group.job is not None for group in self._groups)

    @property
    def concurrency(self) -> int:
        """Trials at once, if nothing else runs on the machines that are there now."""
        return max(1, min(self._machines.wanted, self._machines.fitting))

    def submit(self, task: Task) -> Job:
        """Give the task to an idle group, or to a new one where none is."""
        job = Job(id=next(self._ids), task=task)
        self._start(job)
        return job

    def events(self, timeout_s: float) -> Sequence[Event]:
        """Wait for the first message of any rank, then take all that are there.

        Raises:
            ClusterError: no machine is left whose workers can be used.
            WorkersLostError: the cluster is gone.
        """
        if self._unusable is not None:
            raise self._unusable
        deadline = time.monotonic() + timeout_s
        slots = self.slots
        while True:
            now = time.monotonic()
            messages = self._take(max(0.0, min(deadline - now, self._patience_s(now))))
            events = [event for message in messages if (event := self._receive(message)) is not None]
            events += self._tend()
            for event in events:
                self._has_worked = True
                if not isinstance(event, Reported):
                    self._starts.pop(event.job.id, None)
            is_awaited = events or None in messages or self.slots != slots
            if is_awaited or self._has_no_workers or time.monotonic() >= deadline:
                return events

    @property
    def _has_no_workers(self) -> bool:
        return self._unusable is not None

    def wake(self) -> None:
        """End the waiting of `events`; from any thread."""
        self._messages.put(None)

    def decide(self, job: Job, decision: Decision) -> None:
        """Send the decision to rank 0; nobody waits for it when the job has failed since its report."""
        group = self._group_of(job)
        if group is not None:
            group.decide(decision)

    def cancel(self, job: Job) -> None:
        """End the processes of the job's group; a later job gets a new one."""
        self._starts.pop(job.id, None)
        group = self._group_of(job)
        if group is not None and self._cluster.is_alive():
            group.close()
            self._groups.remove(group)

    def close(self) -> None:
        """End all groups, and the cluster where it is private."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if self._cluster.is_alive():
                for group in self._groups:
                    group.close()
        finally:
            self._groups.clear()
            self._cluster.close()

    # -- messages ----------------------------------------------------------------------------------------------

    def _take(self, timeout_s: float) -> Sequence[Message | None]:
        """All messages that are there; waits for the first one."""
        messages: list[Message | None] = []
        try:
            messages.append(self._messages.get(timeout=timeout_s))
            while True:
                messages.append(self._messages.get_nowait())
        except queue.Empty:
            return messages

    def _receive(self, message: Message | None) -> Event | None:
        if message is None or not message.group.is_usable:
            return None
        try:
            return message.group.receive(message)
        except GroupUnusableError as error:
            return self._start_elsewhere(error)

    def _start_elsewhere(self, error: GroupUnusableError) -> Event | None:
        """Give a job that has not begun to another group, away from machines that cannot run any."""
        self._machines.shun(error.nodes)
        for group in self._groups:
            if group.job is None and (not group.is_placed or group.reservation.nodes & error.machines):
                group.close()  # it may meet the same
        self._forget_closed_groups()
        if self._machines.are_all_shunned:
            self._unusable = ClusterError(f"the workers cannot be used: {error.failure}")
            return None
        if self._starts.get(error.job.id, 0) >= MAX_STARTS:
            if not self._has_worked:
                self._unusable = ClusterError(f"the workers cannot be started: {error.failure}")
                return None
            return Failed(job=error.job, failure=replace(error.failure, cause="lost"))
        _log.warning("a worker group cannot be used and is made anew: %s", error.failure)
        self._start(error.job)
        return None

    # -- groups ------------------------------------------------------------------------------------------------

    def _start(self, job: Job) -> None:
        idle = [group for group in self._groups if group.job is None]
        group = min(idle, key=lambda g: (not g.is_placed, not g.is_warm), default=None) or self._new_group()
        self._starts[job.id] = self._starts.get(job.id, 0) + 1
        group.run(job)
        self._ask_for_groups()

    def _new_group(self) -> WorkerGroup:
        place = Reservation(self._crew.demand, self._machines.hosts, self._machines.shunned)
        group = WorkerGroup(self._crew, place)
        self._groups.append(group)
        return group

    def _ask_for_groups(self) -> None:
        """Have a place ready for the next trial, as far as the machines hold one."""
        now, busy = time.monotonic(), sum(group.job is not None for group in self._groups)
        is_modest = not self.wants_more or now < self._gives_way_until
        while len(self._groups) < (busy if is_modest else max(1, min(self._machines.wanted, 2 * busy))):
            self._new_group()
        if now - self._looked_at >= self._patience_s(now):
            self._looked_at = now
            for group in self._groups:
                group.look()

    def _tend(self) -> Sequence[Event]:
        now = time.monotonic()
        is_due = self._machines.is_due(now)
        if is_due or now - self._alive_at >= ALIVE_S:
            self._alive_at = now
            if not self._cluster.is_alive():
                raise WorkersLostError("the Ray cluster is gone: its head, or the server of this machine, has ended")
        if is_due:
            self._machines.look(now)
            self._close_idle_groups(now)
        events = [event for group in self._groups if (event := self._look_after(group, now)) is not None]
        self._forget_closed_groups()
        self._ask_for_groups()
        self._warn_of_waiting(now)
        return events

    def _look_after(self, group: WorkerGroup, now: float) -> Event | None:
        try:
            return group.tend(now)
        except GroupUnusableError as error:
            return self._start_elsewhere(error)

    def _warn_of_waiting(self, now: float) -> None:
        """Say so when a trial has no place for long, or there is none for any."""
        unplaced = [group for group in self._groups if not group.is_placed]
        waiting = [group for group in unplaced if group.job is not None or len(unplaced) == len(self._groups)]
        if waiting:
            self._machines.warn_of_waiting(now - min(group.reservation.requested_at for group in waiting), now)

    def _close_idle_groups(self, now: float) -> None:
        """End idle groups that nobody needs: of machines that are gone, rested for long, or in the way of others."""
        if not self.wants_more:
            for group in self._groups:
                if group.job is None and not group.is_warm:
                    group.close()
            self._forget_closed_groups()
        idle = [group for group in self._groups if group.job is None and group.is_placed]
        is_wanted = bool(idle) and self._machines.others_wait({group.reservation.id for group in self._groups})
        for group in idle:
            is_gone = not self._machines.alive.issuperset(group.reservation.nodes)
            rested_s = now - group.rested_at
            is_in_the_way = is_wanted and rested_s > SHORT_REST_S
            if is_in_the_way:
                self._gives_way_until = now + GIVES_WAY_S
            if is_gone or is_in_the_way or (group.is_warm and rested_s > REST_S):
                group.close()

    def _forget_closed_groups(self) -> None:
        self._groups = [group for group in self._groups if group.is_usable]

    def _patience_s(self, now: float) -> float:
        waiting = [now - group.reservation.requested_at for group in self._groups if not group.is_placed]
        return EAGER_S if waiting and min(waiting) < EAGER_FOR_S else TEND_S

    def _group_of(self, job: Job) -> WorkerGroup | None:
        return next((group for group in self._groups if group.job == job), None)
