"""Runs one task at a time in this process: for tests, debugging and machines without Ray."""

import itertools
import queue
import threading
from collections.abc import Sequence
from typing import Any

from automl.executors.base import Event, Executor, Failed, Finished, Job, Reported
from automl.worker import Failure, Task, run_task
from trainers.config import Precision
from trainers.reporting import Decision, Report
from trainers.trainer import Trainer

__all__ = ["InlineExecutor"]

CLOSE_S = 1.0
"""How long `close` waits for a training to notice that it was cancelled."""


class _Cancelled(BaseException):
    """Unwinds a training whose job was cancelled; no Exception, so that nothing on the way keeps it."""


class InlineExecutor(Executor):
    """One slot, one rank, one thread; the same events as every executor.

    A cancelled training ends at its next report, which is never delivered.
    """

    slots = 1
    concurrency = 1

    def __init__(self, trainer: Trainer, data: Any, precision: Precision = "auto") -> None:
        """Keep the trainer and what its `load` returned.

        Raises:
            UnsupportedDeviceError: the device cannot compute in that precision.
        """
        from trainers.distributed import Ranks
        from trainers.precision import check_precision

        self._trainer = trainer
        self._data = data
        self._ranks = Ranks.alone()
        check_precision(precision, self._ranks.device)
        self._ids = itertools.count()
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._decisions: dict[int, queue.SimpleQueue[Decision | None]] = {}
        self._threads: dict[int, threading.Thread] = {}

    def submit(self, task: Task) -> Job:
        """Start the task in a thread of its own."""
        job = Job(id=next(self._ids), task=task)
        self._decisions[job.id] = queue.SimpleQueue()
        thread = threading.Thread(target=self._run, args=(job,), name=f"inline-job-{job.id}", daemon=True)
        self._threads[job.id] = thread
        thread.start()
        return job

    def events(self, timeout_s: float) -> Sequence[Event]:
        """Wait for one event."""
        try:
            event = self._events.get(timeout=timeout_s)
        except queue.Empty:
            return ()
        if event is None or event.job.id not in self._decisions:
            return ()  # woken, or of a cancelled job
        if not isinstance(event, Reported):
            self._forget(event.job)
        return (event,)

    def wake(self) -> None:
        """Put an empty event where `events` waits."""
        self._events.put(None)

    def decide(self, job: Job, decision: Decision) -> None:
        """Let the training go on."""
        self._decisions[job.id].put(decision)

    def cancel(self, job: Job) -> None:
        """Let the training end at its next report."""
        decisions = self._decisions.pop(job.id, None)
        if decisions is not None:
            decisions.put(None)

    def close(self) -> None:
        """Cancel the running job and wait a moment for its thread, which nothing can end by force."""
        for job_id in list(self._decisions):
            self._decisions.pop(job_id).put(None)
        for thread in self._threads.values():
            thread.join(CLOSE_S)

    def _run(self, job: Job) -> None:
        decisions = self._decisions[job.id]

        def ask(report: Report) -> Decision:
            self._events.put(Reported(job=job, report=report))
            decision = decisions.get()
            if decision is None:
                raise _Cancelled
            return decision

        try:
            outcome = run_task(job.task, self._trainer, self._data, self._ranks, ask)
        except _Cancelled:
            return
        if isinstance(outcome, Failure):
            self._events.put(Failed(job=job, failure=outcome))
        else:
            self._events.put(Finished(job=job, outcome=outcome))

    def _forget(self, job: Job) -> None:
        self._decisions.pop(job.id, None)
        self._threads.pop(job.id).join()
