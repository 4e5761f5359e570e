"""What follows from what running trials say: a decision, an end, or another try."""

import logging
from collections.abc import Callable
from functools import partial

from automl.artifacts import Artifacts
from automl.events import EpochReported, Event, NewBest
from automl.executors.base import Executor, Failed, Finished, Reported
from automl.memory import ACCUMULATE, MICRO_BATCH, cuts_batches, more_parts
from automl.outbox import KeptReport
from automl.reports import facts_about, kept_report, problem_with_report, problem_with_result
from automl.retries import facts_to_keep, is_tried_again
from automl.running import LiveTrial, LiveTrials
from automl.scheduler import Scheduler
from automl.spec import SearchSpec
from automl.starting import Starter
from automl.stop_sign import StopSign
from automl.stopping import failures_in_a_row
from automl.storing import TrialStore
from automl.worker import Failure
from studies.checkpoints import best_epoch
from studies.ranking import best_of
from studies.study import Study, View
from studies.trial import Trial, TrialState
from trainers.config import TrainConfig, TrainTask
from trainers.reporting import Decision, Report, TrialResult

__all__ = ["Outcomes"]

_log = logging.getLogger(__name__)


class Outcomes:
    """Takes the events of running trials, each trial's in order.

    Args:
        spec: what is searched.
        study: where it is remembered.
        scheduler: decides about reports.
        executor: trains.
        live: the trials that run.
        starter: tries trials again.
        store: stores what becomes of them.
        artifacts: where files lie.
        sign: ends the search.
        observe: is told everything that changes.
    """

    def __init__(
        self,
        *,
        spec: SearchSpec,
        study: Study,
        scheduler: Scheduler,
        executor: Executor,
        live: LiveTrials,
        starter: Starter,
        store: TrialStore,
        artifacts: Artifacts,
        sign: StopSign,
        observe: Callable[[Event], None],
    ) -> None:
        self._spec = spec
        self._study = study
        self._scheduler = scheduler
        self._executor = executor
        self._live = live
        self._starter = starter
        self._store = store
        self._artifacts = artifacts
        self._sign = sign
        self._observe = observe
        self._direction = spec.objective_direction
        self._cuts_batches = cuts_batches(spec.make_trainer())

    def take(self, event: Reported | Finished | Failed) -> None:
        """Take an event; one of a trial that is no longer ours means nothing."""
        live = self._live.of(event.job)
        if live is None:
            return
        if live.storing is not None:
            live.waiting = event  # it has ended while its report is being stored
            return
        match event:
            case Reported():
                self._report(live, event.report)
            case Finished():
                self._finish(live, event.outcome)
            case Failed():
                self._fail(live, event.failure)

    def take_waiting(self) -> None:
        """Take the events whose turn has come, because what was before them is stored."""
        for live in self._live:
            if live.waiting is not None and live.storing is None:
                event, live.waiting = live.waiting, None
                self.take(event)

    # Reports

    def _report(self, live: LiveTrial, report: Report) -> None:
        problem = problem_with_report(report, self._spec.metric)
        if problem is not None:
            self._store.cancel(live)
            self._fail(live, problem)
            return
        kept = kept_report(report, self._spec.metric, live.lease)
        self._store.report(live, kept, partial(self._decide, live, kept))

    def _decide(self, live: LiveTrial, report: KeptReport, view: View) -> None:
        trial = view.trials[live.number]
        self._observe(EpochReported(number=trial.number, epoch=report.epoch, value=report.value))
        if live.waiting is None and not live.is_cancelled:
            assert live.job is not None  # it has reported, and waits
            decision = self._scheduler.decide(trial, view.trials)
            if decision is Decision.CONTINUE and self._sign.stop is not None:
                decision = Decision.PAUSE
            self._executor.decide(live.job, decision)
        self._store.trim(trial)

    # Ends

    def _finish(self, live: LiveTrial, outcome: object) -> None:
        trial = self._study.trials()[live.number]
        problem = problem_with_result(outcome, reported=len(trial.reports))
        if problem is not None:
            self._end_failed(live, problem)
            return
        assert isinstance(outcome, TrialResult)
        match outcome.outcome:
            case "completed":
                self._complete(live, trial, outcome)
            case "stopped":
                self._store.end(live, TrialState.PRUNED, attributes=facts_about(outcome))
            case "paused":
                self._store.pause(live, facts=facts_about(outcome))

    def _complete(self, live: LiveTrial, trial: Trial, result: TrialResult) -> None:
        epoch = best_epoch(trial, self._direction)
        assert epoch is not None  # it has reported, and every report is finite
        value = trial.reports[epoch]

        def greet(ended: Trial, view: View) -> None:
            if any(best.number == ended.number for best in best_of(view.trials, self._direction, 1)):
                self._observe(NewBest(number=ended.number, value=value, epoch=epoch))

        facts = {**facts_about(result), "best_epoch": epoch}
        self._store.end(live, TrialState.COMPLETE, value=value, attributes=facts, then=greet)

    def _fail(self, live: LiveTrial, failure: Failure) -> None:
        """End a trial as FAILED, unless it is not to blame, or may get on with less memory."""
        trial = self._study.trials()[live.number]
        if failure.cause == "disk_full":
            self._stop_for_full_disk(live, failure)
        elif is_tried_again(trial, failure, self._spec.max_retries):
            self._log_retry(live, failure, "trying again")
            self._store.pause(live, is_lost=failure.cause == "lost", facts=facts_to_keep(trial, failure))
        elif _helps_to_cut(failure) and (parts := self._more_parts(live)) is not None:
            self._cut_batches(live, failure, parts)
        else:
            self._end_failed(live, failure)

    def _end_failed(self, live: LiveTrial, failure: Failure) -> None:
        used = {MICRO_BATCH: self._micro_batch(_training(live))} if self._cuts_batches else {}

        def count(trial: Trial, view: View) -> None:
            in_a_row, limit = failures_in_a_row(view.trials, self._sign.began_at), self._spec.max_failures
            if in_a_row >= limit and self._sign.stop is None:
                last = "the last trial" if in_a_row == 1 else f"the last {in_a_row} trials"
                words = f"{last} failed (--max-failures {limit})"
                self._sign.fail(f"{words}, trial {trial.number}: {failure}")

        self._store.end(
            live,
            TrialState.FAILED,
            cause=failure.cause,
            message=failure.message,
            attributes={**used, **facts_about(failure)},
            then=count,
        )

    def _stop_for_full_disk(self, live: LiveTrial, failure: Failure) -> None:
        """Start nothing more: every trial would fail alike. What runs is paused at its next report."""
        self._store.pause(live)
        place = f" of {failure.host}" if failure.host else ""
        self._sign.fail(
            f"the disk{place} is full (trial {live.number}: {failure.message}; artifacts lie in "
            f"{self._artifacts.root}); free some space and go on"
        )

    def _log_retry(self, live: LiveTrial, failure: Failure, what: str) -> None:
        _log.warning("trial=%d attempt=%d %s; %s", live.number, live.lease.attempt, failure, what)

    # Less memory

    def _more_parts(self, live: LiveTrial) -> int | None:
        return more_parts(_training(live), self._spec.procs_per_trial) if self._cuts_batches else None

    def _micro_batch(self, training: TrainConfig) -> int:
        return training.micro_batch(self._spec.procs_per_trial)

    def _cut_batches(self, live: LiveTrial, failure: Failure, parts: int) -> None:
        """Try again with half the micro-batch; whoever goes on with the trial later begins with it."""
        before = _training(live)
        after = before.model_copy(update={"accumulate": parts})
        sizes = f"micro_batch={self._micro_batch(after)} before={self._micro_batch(before)} accumulate={parts}"
        self._log_retry(live, failure, f"trying again {sizes}")
        self._store.note(live, {ACCUMULATE: parts}, lambda view: self._try_again(live, parts))

    def _try_again(self, live: LiveTrial, parts: int) -> None:
        if not live.is_cancelled:  # otherwise the search is over, and gives it back
            self._starter.try_again(live, parts)


def _helps_to_cut(failure: Failure) -> bool:
    """Whether smaller micro-batches may help: not where the machine is full, or the network alone too large."""
    return failure.cause == "oom" and not failure.is_memory_kill and not failure.is_of_network


def _training(live: LiveTrial) -> TrainConfig:
    assert live.job is not None and isinstance(live.job.task, TrainTask)
    return live.job.task.training
