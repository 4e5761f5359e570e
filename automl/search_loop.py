"""The loop of a search: start what the scheduler wants, carry reports up and decisions down, and nothing else."""

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from automl.artifacts import Artifacts
from automl.events import EpochReported, Event, NewBest, TrialEnded, TrialRefused, TrialStarted
from automl.executors.base import Executor, Failed, Finished, Job, Reported
from automl.interrupt import Interrupt
from automl.reports import facts_about, ledger_row, numbers_in, problem_with_report, problem_with_result
from automl.scheduler import Done, Refuse, RejectQueued, Resume, Scheduler, Start, StartQueued, Wait
from automl.spec import SearchSpec
from automl.stopping import StoppingRule, failures_in_a_row
from automl.tasks import train_task
from automl.worker import Failure
from search_spaces.configuration import Configuration
from studies.checkpoints import CheckpointLedger, best_epoch
from studies.errors import BudgetSpentError, LeaseLostError, NotClaimableError, NumberTakenError
from studies.leases import LeaseKeeper
from studies.study import Study
from studies.trial import CheckpointRecord, Lease, Trial, TrialState
from trainers.reporting import Decision, Report, TrialResult

__all__ = ["LEASE_S", "Ending", "SearchLoop"]

LEASE_S = 60.0
"""How long a trial stays ours without a sign of life; renewed three times within that."""
POLL_S = 0.5
"""Longest wait for an event, so that signals, limits and other machines are noticed."""
GRACE_S = 7.0
"""How long running trials may take to reach the end of their epoch after the first signal."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Running:
    """A trial of ours that is being trained."""

    job: Job
    lease: Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Why a search ended, in words, and whether because too many trials failed one after the other."""

    reason: str
    has_failed: bool


class SearchLoop:
    """Drives one study until its budget is spent, a limit is reached, or a signal comes."""

    def __init__(
        self,
        *,
        spec: SearchSpec,
        study: Study,
        scheduler: Scheduler,
        executor: Executor,
        keeper: LeaseKeeper,
        ledger: CheckpointLedger,
        artifacts: Artifacts,
        owner: str,
        interrupt: Interrupt,
        observe: Callable[[Event], None],
    ) -> None:
        """Bring the parts together; `observe` is told everything that changes."""
        self._spec = spec
        self._study = study
        self._scheduler = scheduler
        self._executor = executor
        self._keeper = keeper
        self._ledger = ledger
        self._artifacts = artifacts
        self._owner = owner
        self._interrupt = interrupt
        self._observe = observe
        self._direction = spec.objective_direction
        self._stopping = StoppingRule(direction=self._direction, timeout_s=spec.timeout, target_value=spec.target_value)
        self._distributions = spec.search_space.distributions()
        self._running: dict[int, _Running] = {}
        self._losses: Counter[int] = Counter()
        self._stop_reason: str | None = None
        self._has_failed = False
        self._started_at = time.monotonic()

    def run(self) -> Ending:
        """Search until there is a reason to end; nothing of this process is RUNNING afterwards."""
        try:
            while True:
                self._stop_reason = self._stop_reason or self._reason_to_stop()
                done = self._stop_reason or self._fill_slots()
                if done is not None and (not self._running or self._grace_is_over()):
                    return Ending(reason=done, has_failed=self._has_failed)
                self._handle_events()
                self._give_up_lost_trials()
        finally:
            self._let_go()

    # -- starting ----------------------------------------------------------------------------------------------

    def _reason_to_stop(self) -> str | None:
        if self._interrupt.signal is not None:
            return f"interrupted by {self._interrupt.signal.name}"
        best = self._study.best_trial() if self._spec.target_value is not None else None
        return self._stopping.reason(best, time.monotonic() - self._started_at)

    def _fill_slots(self) -> str | None:
        """Start trials until all slots are taken; return why nothing will be started any more, or None."""
        while len(self._running) < self._executor.slots and not self._interrupt.count:
            action = self._scheduler.next_action(self._study.trials(), self._study.claimable())
            try:
                match action:
                    case Start():
                        self._start(action.number, action.configuration)
                    case StartQueued():
                        self._start_queued(action.trial, action.configuration)
                    case RejectQueued():
                        self._reject_queued(action.trial, action.reason)
                    case Resume():
                        self._resume(action.trial)
                    case Refuse():
                        self._refuse(action)
                    case Wait():
                        return None
                    case Done():
                        return action.reason
            except (NumberTakenError, BudgetSpentError, NotClaimableError) as error:
                _log.debug("another process was first: %s", error)  # look at the study again
        return None

    def _start(self, number: int, configuration: Configuration) -> None:
        lease = self._study.create_trial(
            number=number,
            configuration=configuration,
            distributions=self._distributions,
            owner=self._owner,
            budget=self._spec.trials,
            ttl_s=LEASE_S,
        )
        self._submit(lease, configuration, None)

    def _start_queued(self, trial: Trial, configuration: Configuration) -> None:
        lease = self._study.start_queued(
            trial.id, configuration, self._distributions, owner=self._owner, budget=self._spec.trials, ttl_s=LEASE_S
        )
        self._submit(lease, configuration, None)

    def _reject_queued(self, trial: Trial, reason: str) -> None:
        """End a queued trial that cannot be trained; it was asked for, so it takes its place in the budget."""
        space = self._spec.search_space
        fitting = {
            name: value
            for name, value in trial.configuration.items()
            if name in space.parameters and space.parameters[name].problem(value) is None
        }
        lease = self._study.start_queued(
            trial.id, fitting, self._distributions, owner=self._owner, budget=self._spec.trials, ttl_s=LEASE_S
        )
        self._study.tell(lease, TrialState.FAILED, cause="user_error", attributes={"error": reason})
        self._observe(
            TrialEnded(
                number=trial.number,
                state=TrialState.FAILED,
                epoch=0,
                value=None,
                cause="user_error",
                message=reason,
            )
        )

    def _resume(self, trial: Trial) -> None:
        lease = self._study.claim(trial.id, owner=self._owner, ttl_s=LEASE_S)
        checkpoint = self._ledger.latest(trial)
        self._submit(lease, Configuration(trial.configuration), checkpoint)

    def _refuse(self, action: Refuse) -> None:
        self._study.add_infeasible(
            number=action.number,
            configuration=action.configuration,
            distributions=self._distributions,
            cause=action.reason,
        )
        self._observe(TrialRefused(number=action.number, reason=action.reason))

    def _submit(self, lease: Lease, configuration: Configuration, checkpoint: CheckpointRecord | None) -> None:
        task = train_task(self._spec, self._artifacts, lease, configuration, checkpoint)
        self._keeper.add(lease)
        job = self._executor.submit(task)
        self._running[job.id] = _Running(job=job, lease=lease)
        self._observe(
            TrialStarted(
                number=lease.number,
                attempt=lease.attempt,
                epoch=0 if checkpoint is None else checkpoint.epoch,
                epochs=self._spec.epochs,
            )
        )

    # -- events ------------------------------------------------------------------------------------------------

    def _handle_events(self) -> None:
        if not self._running:
            time.sleep(POLL_S)  # all places are claimed by other processes: look again when they may have ended
            return
        for event in self._executor.events(POLL_S):
            running = self._running.get(event.job.id)
            if running is None:
                continue
            try:
                match event:
                    case Reported():
                        self._report(running, event.report)
                    case Finished():
                        self._finish(running, event.outcome)
                    case Failed():
                        self._fail(running, event.failure)
            except LeaseLostError as error:
                self._abandon(running, str(error))

    def _report(self, running: _Running, report: Report) -> None:
        problem = problem_with_report(report, self._spec.metric)
        if problem is not None:
            self._executor.cancel(running.job)
            self._fail(running, problem)
            return
        value = float(report.metrics[self._spec.metric])
        self._study.report(
            running.lease,
            epoch=report.epoch,
            value=value,
            metrics=numbers_in(report.metrics),
            checkpoint=ledger_row(report, running.lease),
        )
        trials = self._study.trials()
        trial = trials[running.lease.number]
        self._observe(EpochReported(number=trial.number, epoch=report.epoch, value=value))
        decision = self._scheduler.decide(trial, trials)
        if decision is Decision.CONTINUE and self._stop_reason is not None:
            decision = Decision.PAUSE
        self._executor.decide(running.job, decision)
        self._ledger.trim(trial)

    def _finish(self, running: _Running, outcome: object) -> None:
        trial = self._study.trials()[running.lease.number]
        problem = problem_with_result(outcome, reported=len(trial.reports))
        if problem is not None:
            self._fail(running, problem)
            return
        assert isinstance(outcome, TrialResult)
        match outcome.outcome:
            case "completed":
                self._end(running, TrialState.COMPLETE, result=outcome)
            case "stopped":
                self._end(running, TrialState.PRUNED, result=outcome)
            case "paused":
                self._pause(running)

    def _fail(self, running: _Running, failure: Failure) -> None:
        """End a trial as FAILED; a lost one is not to blame, and goes on until its retries are used up."""
        number = running.lease.number
        if failure.cause == "lost":
            self._losses[number] += 1
            if self._losses[number] <= self._spec.max_retries:
                _log.warning("trial=%d attempt=%d %s; trying again", number, running.lease.attempt, failure)
                self._pause(running)
                return
        self._end(running, TrialState.FAILED, failure=failure)
        in_a_row = failures_in_a_row(self._study.trials())
        if in_a_row >= self._spec.max_failures and self._stop_reason is None:
            self._has_failed = True
            limit = self._spec.max_failures
            self._stop_reason = f"the last {in_a_row} trials failed (--max-failures {limit}), trial {number}: {failure}"

    # -- ending ------------------------------------------------------------------------------------------------

    def _end(
        self,
        running: _Running,
        state: TrialState,
        *,
        result: TrialResult | None = None,
        failure: Failure | None = None,
    ) -> None:
        trial = self._study.trials()[running.lease.number]
        epoch = best_epoch(trial, self._direction) if state is TrialState.COMPLETE else None
        value = None if epoch is None else trial.reports[epoch]
        attributes = facts_about(result, failure) | ({} if epoch is None else {"best_epoch": epoch})
        self._study.tell(
            running.lease,
            state,
            value=value,
            cause=None if failure is None else failure.cause,
            attributes=attributes,
        )
        self._forget(running)
        self._observe(
            TrialEnded(
                number=trial.number,
                state=state,
                epoch=trial.last_epoch,
                value=value if value is not None else trial.reports.get(trial.last_epoch),
                cause=None if failure is None else failure.cause,
                message="" if failure is None else failure.message,
            )
        )
        self._ledger.trim(self._study.trials()[trial.number])
        best = self._study.best_trial()
        if epoch is not None and value is not None and best is not None and best.number == trial.number:
            self._observe(NewBest(number=trial.number, value=value, epoch=epoch))

    def _pause(self, running: _Running) -> None:
        self._study.pause(running.lease)
        self._forget(running)
        trial = self._study.trials()[running.lease.number]
        self._observe(
            TrialEnded(
                number=trial.number,
                state=TrialState.PAUSED,
                epoch=trial.last_epoch,
                value=trial.reports.get(trial.last_epoch),
            )
        )

    def _forget(self, running: _Running) -> None:
        self._keeper.discard(running.lease)
        del self._running[running.job.id]

    def _abandon(self, running: _Running, why: str) -> None:
        """Stop a trial that belongs to another process now."""
        _log.warning("trial=%d %s; it goes on elsewhere", running.lease.number, why)
        self._executor.cancel(running.job)
        self._forget(running)

    def _give_up_lost_trials(self) -> None:
        for lease in self._keeper.lost():
            running = next((r for r in self._running.values() if r.lease == lease), None)
            if running is not None:
                self._abandon(running, "lease lost")

    def _grace_is_over(self) -> bool:
        """Whether a signal came, and running trials have had their time to reach the end of an epoch."""
        waited_s = time.monotonic() - self._interrupt.requested_at
        return self._interrupt.count > 1 or (self._interrupt.count == 1 and waited_s > GRACE_S)

    def _let_go(self) -> None:
        """Give back what is still running, so that the next process can go on with it at once."""
        for running in list(self._running.values()):
            self._executor.cancel(running.job)
            try:
                self._pause(running)
            except LeaseLostError as error:
                _log.debug("trial=%d is no longer ours: %s", running.lease.number, error)
