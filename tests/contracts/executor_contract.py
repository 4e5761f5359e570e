"""What every executor owes; a test class inherits this and gives an executor that trains the toy with one rank."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from automl.executors.base import Event, Executor, Failed, Finished, Job, Reported
from automl.worker import Outcome
from tests.helpers.toy import loss_after
from trainers.config import EvaluateTask, TrainConfig, TrainTask
from trainers.reporting import Decision, TrialResult

__all__ = ["ExecutorContract", "run_to_end", "toy_task"]

PATIENCE_S = 60.0


def toy_task(root: Path, name: str = "job", *, epochs: int = 3, **configuration: float | str) -> TrainTask:
    return TrainTask(
        space="tests.helpers.moody_toy",
        configuration={"x": 0.5, "mood": "fine", "epoch_s": 0.0, **configuration},
        training=TrainConfig(epochs=epochs, metric="loss", direction="minimize"),
        artifacts_root=str(root),
        checkpoint_dir=name,
    )


def run_to_end(
    executor: Executor, *jobs: Job, decide: Callable[[Reported], Decision] = lambda event: Decision.CONTINUE
) -> list[Event]:
    """Answer the reports of these jobs until all have ended; return everything that happened."""
    events: list[Event] = []
    open_jobs = {job.id for job in jobs}
    deadline = time.monotonic() + PATIENCE_S
    while open_jobs:
        assert time.monotonic() < deadline, f"still open: {open_jobs}; so far: {events}"
        for event in executor.events(1.0):
            events.append(event)
            if isinstance(event, Reported):
                executor.decide(event.job, decide(event))
            else:
                open_jobs.discard(event.job.id)
    return events


def epochs(events: Sequence[Event], job: Job) -> list[int]:
    return [event.report.epoch for event in events if isinstance(event, Reported) and event.job == job]


def end_of(events: Sequence[Event], job: Job) -> Finished | Failed:
    (end,) = [event for event in events if event.job == job and isinstance(event, Finished | Failed)]
    return end


class ExecutorContract:
    """Laws for an executor; the fixture `executor` gives one with the toy trainer."""

    def test_reports_come_in_order_and_the_result_last(self, executor: Executor, tmp_path: Path) -> None:
        job = executor.submit(toy_task(tmp_path))
        events = run_to_end(executor, job)
        assert epochs(events, job) == [1, 2, 3]
        assert events[-1] == end_of(events, job)
        assert isinstance(events[0], Reported)
        assert events[0].report.metrics["loss"] == loss_after(1, 0.5)
        end = end_of(events, job)
        assert isinstance(end, Finished)
        assert end.outcome == TrialResult(outcome="completed", epoch=3, facts={"world_size": 1})

    def test_stop_ends_the_training_at_that_epoch(self, executor: Executor, tmp_path: Path) -> None:
        assert _leave_at_two(executor, tmp_path, Decision.STOP) == TrialResult(outcome="stopped", epoch=2)

    def test_pause_ends_the_training_at_that_epoch(self, executor: Executor, tmp_path: Path) -> None:
        assert _leave_at_two(executor, tmp_path, Decision.PAUSE) == TrialResult(outcome="paused", epoch=2)

    def test_failure_is_told_with_cause_rank_and_traceback_and_the_next_task_runs(
        self, executor: Executor, tmp_path: Path
    ) -> None:
        job = executor.submit(toy_task(tmp_path, mood="raise_0"))
        end = end_of(run_to_end(executor, job), job)
        assert isinstance(end, Failed)
        assert (end.failure.cause, end.failure.error, end.failure.rank) == ("user_error", "ZeroDivisionError", 0)
        assert "_misbehave" in end.failure.traceback
        following = executor.submit(toy_task(tmp_path))
        assert isinstance(end_of(run_to_end(executor, following), following), Finished)

    def test_cancelled_job_is_silent_and_its_slot_is_free(self, executor: Executor, tmp_path: Path) -> None:
        job = executor.submit(toy_task(tmp_path, epochs=1000, epoch_s=0.01))
        first: list[Event] = []
        while not first:
            first += executor.events(PATIENCE_S)
        executor.cancel(job)
        following = executor.submit(toy_task(tmp_path))
        events = run_to_end(executor, following)
        assert {event.job.id for event in events} == {following.id}

    def test_evaluation_gives_metrics_without_reports(self, executor: Executor, tmp_path: Path) -> None:
        run_to_end(executor, executor.submit(toy_task(tmp_path, name="kept")))
        task = EvaluateTask(
            space="tests.helpers.toy",
            configuration={"x": 0.5},
            artifacts_root=str(tmp_path),
            checkpoint="kept/epoch-0002.json",
        )
        job = executor.submit(task)
        end = end_of(run_to_end(executor, job), job)
        assert isinstance(end, Finished)
        assert end.outcome == {"loss": 2.0}

    def test_events_return_when_the_time_is_over(self, executor: Executor, tmp_path: Path) -> None:
        job = executor.submit(toy_task(tmp_path, epochs=1, epoch_s=1.5))
        began = time.monotonic()
        assert list(executor.events(0.2)) == []
        assert time.monotonic() - began < 1.2
        run_to_end(executor, job)

    def test_close_may_be_called_twice(self, executor: Executor) -> None:
        executor.close()
        executor.close()


def _leave_at_two(executor: Executor, root: Path, decision: Decision) -> Outcome:
    job = executor.submit(toy_task(root))
    events = run_to_end(executor, job, decide=lambda e: decision if e.report.epoch == 2 else Decision.CONTINUE)
    assert epochs(events, job) == [1, 2]
    end = end_of(events, job)
    assert isinstance(end, Finished)
    return end.outcome
