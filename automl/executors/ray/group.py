"""A worker group: the ranks of one trial after the other, in one placement group, kept warm."""

import math
import time
from collections.abc import Collection
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import ray
from ray.exceptions import ActorUnavailableError, RayError, RaySystemError, RayTaskError

from automl.executors.base import Event, Failed, Finished, Job, Reported
from automl.executors.ray.crew import Crew, GroupUnusableError, Message, MessageKind
from automl.executors.ray.losses import ask_for_memory_kills, died_at_birth, ended_by_kernel, loss
from automl.executors.ray.rank import Began, Place, Rank, Unusable
from automl.executors.ray.reservation import Reservation
from automl.executors.ray.run import Run
from automl.executors.ray.watch import Watch
from automl.memory_kills import MemoryKills
from automl.worker import Failure, Task, describe_failure
from trainers.config import EvaluateTask
from trainers.reporting import Decision, Report

__all__ = ["WorkerGroup"]

PULSE_S = 2.0
"""How often ranks are asked what they do; shorter limits are looked after more often."""
DRIVER_STOOD_S = 5.0
"""A driver that has not looked for so long stood still itself, or waited for the database."""
KEEPS_THE_GROUP = frozenset({"non_finite", "bad_data"})
"""Causes that all ranks find together, so that none of them hangs in a collective operation afterwards."""
KEEPS_A_SINGLE_RANK = KEEPS_THE_GROUP | {"user_error"}
"""Causes after which a process without peers is as good as new; after `oom` only a new one has clean memory."""

_RankActor = ray.remote(concurrency_groups={"exchange": 1, "control": 1})(Rank)  # type: ignore[call-overload]  # an option of actors


class WorkerGroup:
    """Runs one job at a time and lives on after it, unless a rank got lost or may hang.

    It first holds a reservation alone; its processes are made for the first job.
    """

    def __init__(self, crew: Crew, reservation: Reservation) -> None:
        """Keep the reservation.

        Args:
            crew: what the group is made for.
            reservation: where its ranks will be.
        """
        self._crew = crew
        self._reservation = reservation
        self._ranks: list[Any] = []
        self._memory_kills: dict[int, MemoryKills] = {}
        self._run: Run | None = None
        limits = (crew.limits.trial_s, crew.limits.stall_s)
        self._pulse_s = min([PULSE_S, *(limit / 4 for limit in limits if limit is not None)])
        self._pulsed_at = -math.inf
        self.rested_at = self._tended_at = time.monotonic()
        self.is_usable = True

    @property
    def reservation(self) -> Reservation:
        """Where its ranks are, or will be."""
        return self._reservation

    @property
    def is_placed(self) -> bool:
        """Whether its ranks have their places."""
        return self._reservation.is_placed

    @property
    def job(self) -> Job | None:
        """The job that is under way."""
        return None if self._run is None else self._run.job

    @property
    def is_warm(self) -> bool:
        """Whether it holds processes, not a reservation alone."""
        return bool(self._ranks)

    def look(self) -> None:
        """See whether the ranks have got their places."""
        if not self.is_placed and self._reservation.look() and self._run is not None:
            self._run.watch.place(time.monotonic())

    def run(self, job: Job) -> None:
        """Start the job on all ranks, as soon as they have their place."""
        ranks, now = self._crew.demand.ranks, time.monotonic()
        limits = self._crew.limits
        if isinstance(job.task, EvaluateTask):
            limits = replace(limits, trial_s=None)  # it is no training
        self._run = Run(
            job=job,
            watch=Watch(limits=limits, ranks=ranks, made_at=now),
            waiting=set(range(ranks)),
        )
        if self._ranks:
            self._run.begin()
        else:
            self._reservation.look_again()
            self._ranks = self._make_ranks()
        self._memory_kills.clear()  # what the kernel has done before is no fault of this job
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
        if message.kind == "end":
            return self._receive_end(message.rank, message.answer)
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
                host=self._reservation.host_of(verdict.rank),
            )
            return self._fail(run)
        if now - self._pulsed_at >= self._pulse_s:
            self._ask_for_pulses(now)
        return None

    def close(self) -> None:
        """End all processes of the group and give back what it occupies."""
        self.is_usable = False
        self._run = None
        for rank in self._ranks:
            ray.kill(rank)
        self._reservation.give_back()

    # -- processes ---------------------------------------------------------------------------------------------

    def _make_ranks(self) -> list[Any]:
        """Ask for the processes and their set-up; they start while the driver goes on."""
        crew, demand = self._crew, self._crew.demand
        ranks = [
            _RankActor.options(**self._reservation.options(index)).remote(
                Place(rank=index, ranks=demand.ranks, has_gpu=demand.gpus > 0, timeout_s=crew.collective_s)
            )
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

    def _listen(self, reference: Any, kind: MessageKind, rank: int) -> None:
        """Have the answer posted when it comes."""
        job, post = self.job, self._crew.post

        def on_answer(answer: "Future[Any]") -> None:
            post(Message(group=self, job=job, kind=kind, rank=rank, answer=answer))

        reference.future().add_done_callback(on_answer)

    def _ask_for_pulses(self, now: float) -> None:
        """Ask the ranks how they fare."""
        assert self._run is not None
        self._pulsed_at = now
        for index in set(range(len(self._ranks))) - self._run.pulsing:
            self._run.pulsing.add(index)
            self._listen(self._ranks[index].pulse.remote(), "pulse", index)

    def _machine_of(self, rank: int) -> Collection[str]:
        """Identity of the machine of one rank, as far as it is known."""
        self.look()  # it may have got its place since the last look
        node = self._reservation.node_of(rank)
        return () if node is None else {node}

    # -- messages ----------------------------------------------------------------------------------------------

    def _receive_end(self, rank: int, answer: "Future[Any]") -> Event | None:
        """A process has ended while it rested, or with a job, which may just wait for the driver's decision."""
        if self._run is not None:
            return self._receive_answer(self._run, rank, answer)
        self.close()
        return None

    def _receive_answer(self, run: Run, rank: int, answer: "Future[Any]") -> Event | None:
        if rank not in run.waiting:
            return None  # its end is known already
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
            run.begin()
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

    def _fail_unread(self, run: Run, rank: int, error: Exception) -> Event:
        """A person's own report or result may raise anything when it is sent or read."""
        run.outcomes[rank] = describe_failure(error, rank)
        return self._fail(run)

    def _gone(self, run: Run, error: RayError, rank: int) -> Failure:
        """A rank whose process is gone: ask its machine whether the kernel ended it for want of memory."""
        self.look()  # it may have been placed and lost since the last look
        failure = loss(error, rank, self._reservation.host_of(rank))
        if died_at_birth(error):
            raise self._unusable(run, failure, self._machine_of(rank))
        if isinstance(error, ActorUnavailableError) and not run.has_told:
            raise self._unusable(run, failure)  # its machine was gone before it was given the job
        node = self._reservation.node_of(rank)
        if failure.cause == "lost" and rank in self._memory_kills and node is not None:
            run.asked.add(rank)
            self._listen(ask_for_memory_kills(node, self._memory_kills[rank].counter), "kills", rank)
        return failure

    def _receive_kills(self, run: Run, rank: int, answer: "Future[Any]") -> Event | None:
        run.asked.discard(rank)
        if answer.exception() is None and answer.result().count > self._memory_kills[rank].count:
            run.outcomes[rank] = ended_by_kernel(rank, self._reservation.host_of(rank))
        return self._end(run)

    def _receive_pulse(self, run: Run, rank: int, answer: "Future[Any]") -> None:
        run.pulsing.discard(rank)
        if answer.exception() is None:  # else: the rank's own outcome tells why
            run.has_told = run.has_told or answer.result().place is not None
            self._memory_kills[rank] = answer.result().memory_kills
            run.watch.note(rank, answer.result(), time.monotonic())

    # -- ending ------------------------------------------------------------------------------------------------

    def _end(self, run: Run) -> Event | None:
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

    def _fail(self, run: Run) -> Event:
        failure = run.first_cause
        if failure.cause == "lost" and not run.has_begun:
            raise self._unusable(run, failure)
        event = Failed(job=run.job, failure=failure)
        keeps = KEEPS_THE_GROUP if len(self._ranks) > 1 else KEEPS_A_SINGLE_RANK
        have_all_failed = not run.waiting and len(run.failures) == len(self._ranks)
        if have_all_failed and all(failure.cause in keeps for failure in run.failures):
            return self._free(event)
        self.close()
        return event

    def _unusable(self, run: Run, failure: Failure, nodes: Collection[str] = ()) -> GroupUnusableError:
        self.close()
        return GroupUnusableError(run.job, failure, nodes, self._reservation.nodes)

    def _free(self, event: Event) -> Event:
        self._run = None
        self.rested_at = time.monotonic()
        return event
