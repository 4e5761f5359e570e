"""A worker group: the ranks of one trial after the other, in one placement group, kept warm."""

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import ray
from ray.exceptions import ActorUnavailableError, RayError, RaySystemError, RayTaskError
from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from automl.executors.base import Event, Failed, Finished, Job, Reported
from automl.executors.ray.losses import ask_for_memory_kills, died_at_birth, ended_by_kernel, loss
from automl.executors.ray.placement import Demand
from automl.executors.ray.rank import Began, Place, Rank, Unusable
from automl.executors.ray.watch import Limits, Watch
from automl.worker import Failure, Outcome, Task, describe_failure
from trainers.config import Precision
from trainers.reporting import Decision, Report

__all__ = ["Crew", "GroupUnusableError", "Message", "WorkerGroup"]

PEER_GRACE_S = 2.0
"""How long the ranks of a failed trial are given to tell their own side before the group is ended."""
KILLS_GRACE_S = 8.0
"""How long a machine may take to tell whether its kernel ended a process: a new process has to start there."""
PULSE_S = 2.0
"""How often ranks are asked what they do; shorter limits are looked after more often."""
DRIVER_STOOD_S = 5.0
"""A driver that has not looked for so long stood still itself, or waited for the database."""
KEEPS_THE_GROUP = frozenset({"non_finite", "bad_data"})
"""Causes that all ranks find together, so that none of them hangs in a collective operation afterwards."""
KEEPS_A_SINGLE_RANK = KEEPS_THE_GROUP | {"user_error"}
"""Causes after which a process without peers is as good as new; after `oom` only a new one has clean memory."""

_RankActor = ray.remote(concurrency_groups={"exchange": 1, "control": 1})(Rank)  # type: ignore[call-overload]  # an option of actors
_Kind: TypeAlias = Literal["answer", "pulse", "kills", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """An answer of a worker process, as it comes in: to be received by its group in the driver's thread."""

    group: "WorkerGroup"
    job: Job | None
    kind: _Kind
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


@dataclass(slots=True)
class _Run:
    """What is known of the job that is under way."""

    job: Job
    watch: Watch
    waiting: set[int]
    outcomes: dict[int, Outcome | Failure] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)
    pulsing: set[int] = field(default_factory=set)
    has_begun: bool = False
    has_told: bool = False
    failed_at: float | None = None

    @property
    def is_grace_over(self) -> bool:
        """Whether the other ranks, and the machines that were asked, have had time enough since the first failure."""
        grace_s = KILLS_GRACE_S if self.asked else PEER_GRACE_S
        return self.failed_at is not None and time.monotonic() > self.failed_at + grace_s

    @property
    def failures(self) -> list[Failure]:
        return [outcome for outcome in self.outcomes.values() if isinstance(outcome, Failure)]


class WorkerGroup:
    """Runs one job at a time and lives on after it, unless a rank got lost or may hang.

    It first holds a reservation alone; its processes are made for the first job.
    """

    def __init__(self, crew: Crew, hosts: Mapping[str, str], shunned: Collection[str] = ()) -> None:
        """Ask for the reservation; nothing waits for it.

        Args:
            crew: what it is made for.
            hosts: identity of a machine -> its name, kept up to date by the caller.
            shunned: identities of machines that cannot be used.
        """
        demand = crew.demand
        self._crew, self._hosts = crew, hosts
        selector = {"ray.io/node-id": f"!in({','.join(sorted(shunned))})"}
        self._placement = placement_group(
            [demand.bundle()] * demand.ranks,
            strategy="PACK" if demand.spread else "STRICT_PACK",
            bundle_label_selector=[selector] * demand.ranks if shunned else None,
        )
        self._ranks: list[Any] = []
        self._nodes: Mapping[int, str] = {}
        self._memory_kills: dict[int, int] = {}
        self._run: _Run | None = None
        self._pulsed_at = -math.inf
        self.requested_at = self.rested_at = self._tended_at = time.monotonic()
        self.is_placed = False
        self.is_usable = True

    @property
    def id(self) -> str:
        """Ray's name of the reservation."""
        return str(self._placement.id.hex())

    @property
    def job(self) -> Job | None:
        """The job that is under way."""
        return None if self._run is None else self._run.job

    @property
    def is_warm(self) -> bool:
        """Whether it holds processes, not a reservation alone."""
        return bool(self._ranks)

    @property
    def nodes(self) -> frozenset[str]:
        """Identities of the machines that its ranks have their places on; empty before it is placed."""
        return frozenset(self._nodes.values())

    def look(self) -> bool:
        """Ask Ray whether the group has its place by now."""
        if not self.is_placed:
            entry = placement_group_table(self._placement)
            self.is_placed = entry["state"] == "CREATED"
            self._nodes = dict(entry["bundles_to_node_id"]) if self.is_placed else {}
            if self._run is not None:
                self._run.watch.place(time.monotonic())
        return self.is_placed

    def run(self, job: Job) -> None:
        """Start the job on all ranks, as soon as they have their place."""
        ranks, now = self._crew.demand.ranks, time.monotonic()
        self._run = _Run(
            job=job,
            watch=Watch(limits=self._crew.limits, ranks=ranks, made_at=now),
            waiting=set(range(ranks)),
        )
        if self._ranks:
            self._begin(self._run)
        else:
            self._ranks = self._make_ranks()
        if now - self._pulsed_at > 2 * PULSE_S:
            self._memory_kills.clear()  # what the kernel has done while the group rested is no fault of this job
        self._ask_for_pulses(now)
        for index in range(ranks):
            self._tell(index, job.task)

    def decide(self, decision: Decision) -> None:
        """Answer the last report and ask for the next one, in one message."""
        if self._run is not None:
            self._run.watch.decide(time.monotonic())
            self._tell(0, decision)

    def receive(self, message: Message) -> Event | None:
        """Take a message; None when it makes no event.

        Raises:
            GroupUnusableError: the processes can run nothing; the group is closed.
        """
        if message.kind == "end" and self._run is None:
            self.close()  # a process has ended while it rested
        if self._run is None or message.job != self._run.job:
            return None  # of a job that has ended
        match message.kind:
            case "answer":
                return self._receive_answer(self._run, message.rank, message.answer)
            case "pulse":
                self._receive_pulse(self._run, message.rank, message.answer)
                return None
            case "kills":
                return self._receive_kills(self._run, message.rank, message.answer)
            case "end":
                return None  # what was told to the process last is answered by the same error

    def tend(self, now: float) -> Event | None:
        """Look after the job: its limits, peers that do not answer, and the next question how it fares.

        Raises:
            GroupUnusableError: the processes are gone, and have not begun with the job; the group is closed.
        """
        run, passed_s, self._tended_at = self._run, now - self._tended_at, now
        if run is None or not self.is_placed:
            return None
        if passed_s > DRIVER_STOOD_S:
            run.watch.excuse(passed_s)
        if run.failed_at is not None:
            return self._fail(run) if run.is_grace_over else None
        verdict = run.watch.verdict(now)
        if verdict is not None:
            run.outcomes[verdict.rank] = Failure(
                cause="timeout",
                error="TimeoutError",
                message=verdict.reason,
                traceback=verdict.stack,
                rank=verdict.rank,
                host=self._host(verdict.rank),
            )
            return self._fail(run)
        self._ask_for_pulses(now)
        return None

    def close(self) -> None:
        """End all processes of the group and give back what it occupies."""
        self.is_usable = False
        self._run = None
        for rank in self._ranks:
            ray.kill(rank)
        remove_placement_group(self._placement)

    # -- processes ---------------------------------------------------------------------------------------------

    def _make_ranks(self) -> list[Any]:
        """Ask for the processes and their set-up; they start while the driver goes on."""
        crew, demand = self._crew, self._crew.demand
        ranks = [
            _RankActor.options(
                num_cpus=demand.cpus,
                num_gpus=demand.gpus,
                memory=demand.memory or None,
                scheduling_strategy=PlacementGroupSchedulingStrategy(self._placement, index),
            ).remote(Place(rank=index, ranks=demand.ranks, has_gpu=demand.gpus > 0, timeout_s=crew.collective_s))
            for index in range(demand.ranks)
        ]
        for rank in ranks:
            rank.set_up.remote(crew.trainer, crew.data, max(1, int(demand.cpus)), crew.versions)
        address = ranks[0].open_store.remote() if demand.ranks > 1 else None
        for index, rank in enumerate(ranks):
            rank.join.remote(address, crew.precision)
            self._listen(rank.work.remote(), "end", index)
        return ranks

    def _tell(self, rank: int, message: Task | Decision | None) -> None:
        self._listen(self._ranks[rank].exchange.remote(message), "answer", rank)

    def _listen(self, reference: Any, kind: _Kind, rank: int) -> None:
        """Have the answer posted when it comes."""
        job, post = self.job, self._crew.post

        def on_answer(answer: "Future[Any]") -> None:
            post(Message(group=self, job=job, kind=kind, rank=rank, answer=answer))

        reference.future().add_done_callback(on_answer)

    def _ask_for_pulses(self, now: float) -> None:
        """Ask the ranks how they fare, if the last time is long enough ago."""
        assert self._run is not None
        if now - self._pulsed_at < self._pulse_s:
            return
        self._pulsed_at = now
        for index in set(range(len(self._ranks))) - self._run.pulsing:
            self._run.pulsing.add(index)
            self._listen(self._ranks[index].pulse.remote(), "pulse", index)

    @property
    def _pulse_s(self) -> float:
        limits = self._crew.limits
        return min([PULSE_S, *(limit / 4 for limit in (limits.trial_s, limits.stall_s) if limit is not None)])

    def _machine_of(self, rank: int) -> Collection[str]:
        """Identity of the machine of one rank, as far as it is known."""
        self.look()  # it may have got its place since the last look
        return {self._nodes[rank]} if rank in self._nodes else ()

    def _host(self, rank: int) -> str:
        return self._hosts.get(self._nodes.get(rank, ""), "")

    # -- messages ----------------------------------------------------------------------------------------------

    def _receive_answer(self, run: _Run, rank: int, answer: "Future[Any]") -> Event | None:
        try:
            told = answer.result()
        except RayTaskError as error:
            return self._fail_unread(run, rank, error.cause)
        except RaySystemError as error:  # so Ray calls what cannot be read
            return self._fail_unread(run, rank, error)
        except RayError as error:
            told = self._gone(run, error, rank)
        except Exception as error:
            return self._fail_unread(run, rank, error)
        if isinstance(told, Began):
            self._begin(run)
            self._tell(rank, None)
            return None
        if isinstance(told, Report):
            run.has_told = True
            run.watch.report(time.monotonic())
            return Reported(job=run.job, report=told)
        if isinstance(told, Unusable):
            raise self._unusable(run, told.failure, self._machine_of(rank) if told.is_for_good else ())
        run.waiting.discard(rank)
        run.outcomes[rank] = told
        return self._end(run)

    def _fail_unread(self, run: _Run, rank: int, error: Exception) -> Event:
        """A person's own report or result may raise anything when it is sent or read."""
        run.outcomes[rank] = describe_failure(error, rank)
        return self._fail(run)

    def _begin(self, run: _Run) -> None:
        run.has_begun = True
        run.watch.begin(time.monotonic())

    def _gone(self, run: _Run, error: RayError, rank: int) -> Failure:
        """A rank whose process is gone: ask its machine whether the kernel ended it for want of memory."""
        self.look()  # it may have been placed and lost since the last look
        failure = loss(error, rank, self._host(rank))
        if died_at_birth(error):
            raise self._unusable(run, failure, self._machine_of(rank))
        if isinstance(error, ActorUnavailableError) and not run.has_told:
            raise self._unusable(run, failure)  # its machine was gone before it was given the job
        if failure.cause == "lost" and rank in self._memory_kills and rank in self._nodes:
            run.asked.add(rank)
            self._listen(ask_for_memory_kills(self._nodes[rank]), "kills", rank)
        return failure

    def _receive_kills(self, run: _Run, rank: int, answer: "Future[Any]") -> Event | None:
        run.asked.discard(rank)
        if answer.exception() is None and answer.result() > self._memory_kills[rank]:
            run.outcomes[rank] = ended_by_kernel(rank, self._host(rank))
        return self._end(run)

    def _receive_pulse(self, run: _Run, rank: int, answer: "Future[Any]") -> None:
        run.pulsing.discard(rank)
        if answer.exception() is None:  # else: the rank's own outcome tells why
            run.has_told = run.has_told or answer.result().place is not None
            self._memory_kills[rank] = answer.result().memory_kills
            run.watch.note(rank, answer.result(), time.monotonic())

    # -- ending ------------------------------------------------------------------------------------------------

    def _end(self, run: _Run) -> Event | None:
        """The job's end, once every rank has answered, or one has failed alone."""
        if run.waiting or run.asked:
            if run.failures and run.failed_at is None:
                run.failed_at = time.monotonic()
            return None
        if run.failures:
            return self._fail(run)
        outcome = run.outcomes[0]
        assert not isinstance(outcome, Failure)
        return self._free(Finished(job=run.job, outcome=outcome))

    def _fail(self, run: _Run) -> Event:
        failure = _first_cause(run.failures)
        if failure.cause == "lost" and not run.has_begun:
            raise self._unusable(run, failure)
        event = Failed(job=run.job, failure=failure)
        keeps = KEEPS_THE_GROUP if len(self._ranks) > 1 else KEEPS_A_SINGLE_RANK
        have_all_failed = not run.waiting and len(run.failures) == len(self._ranks)
        if have_all_failed and all(failure.cause in keeps for failure in run.failures):
            return self._free(event)
        self.close()
        return event

    def _unusable(self, run: _Run, failure: Failure, nodes: Collection[str] = ()) -> GroupUnusableError:
        self.close()
        return GroupUnusableError(run.job, failure, nodes, self.nodes)

    def _free(self, event: Event) -> Event:
        self._run = None
        self.rested_at = time.monotonic()
        return event


def _first_cause(failures: Sequence[Failure]) -> Failure:
    """The failure that is no consequence of another rank's."""
    return next((failure for failure in failures if not failure.is_follow_up), failures[0])
