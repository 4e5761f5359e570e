"""The loop of a search: start what the scheduler wants, carry reports up and decisions down, and nothing else."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from automl.artifacts import Artifacts
from automl.events import EpochReported, Event, NewBest, TrialEnded, TrialRefused, TrialStarted
from automl.executors.base import Executor, Failed, Finished, Job, Reported
from automl.interrupt import Interrupt
from automl.outbox import KeptReport, KeptResult, Outbox
from automl.reports import facts_about, ledger_row, numbers_in, problem_with_report, problem_with_result
from automl.scheduler import Done, Refuse, RejectQueued, Resume, Scheduler, Start, StartQueued, Wait
from automl.spec import SearchSpec
from automl.stopping import Stop, StoppingRule, failures_in_a_row
from automl.tasks import train_task
from automl.worker import Failure
from search_spaces.configuration import Configuration
from studies.checkpoints import CheckpointLedger, best_epoch
from studies.errors import BudgetSpentError, LeaseLostError, NotClaimableError, NumberTakenError, StorageError
from studies.leases import LeaseKeeper
from studies.study import Study, View
from studies.trial import CheckpointRecord, Lease, Trial, TrialState
from trainers.reporting import Decision, Report, TrialResult

__all__ = ["LEASE_S", "Ending", "SearchLoop"]

LEASE_S = 90.0
"""How long a trial stays ours without a sign of life: longer than a database may be away."""
POLL_S = 0.5
"""Longest wait for an event, so that signals, limits and other machines are noticed."""
FAREWELL_S = 1.0
"""How long a database that stayed away is asked to take the running trials back."""
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
        outbox: Outbox,
        owner: str,
        interrupt: Interrupt,
        observe: Callable[[Event], None],
        began_at: float,
    ) -> None:
        """Bring the parts together.

        Args:
            spec: what is searched.
            study: where it is remembered.
            scheduler: says what to do next.
            executor: trains.
            keeper: keeps the leases.
            ledger: finds and removes checkpoints.
            artifacts: where files lie.
            outbox: takes results that the database cannot.
            owner: this process.
            interrupt: a person's signals.
            observe: is told everything that changes.
            began_at: when this run began, by the database's clock.
        """
        self._spec = spec
        self._study = study
        self._scheduler = scheduler
        self._executor = executor
        self._keeper = keeper
        self._ledger = ledger
        self._artifacts = artifacts
        self._outbox = outbox
        self._owner = owner
        self._interrupt = interrupt
        self._observe = observe
        self._direction = spec.objective_direction
        self._distributions = spec.search_space.distributions()
        self._running: dict[int, _Running] = {}
        self._stopping = StoppingRule(direction=self._direction, began_at=began_at)
        self._stop: Stop | None = None
        self._stopped_at = 0.0
        self._has_failed = False
        self._patience_s: float | None = None

    def run(self) -> Ending:
        """Search until there is a reason to end; nothing of this process is RUNNING afterwards."""
        try:
            while True:
                view = self._study.look()
                self._stop_for(self._reason_to_stop(view))
                done = self._fill_slots(view) if self._stop is None else self._stop.reason
                if done is not None and (not self._running or self._grace_is_over()):
                    return Ending(reason=done, has_failed=self._has_failed)
                self._handle_events()
                self._give_up_lost_trials()
        except StorageError:
            self._patience_s = FAREWELL_S  # it was waited for long enough
            raise
        finally:
            self._let_go()

    # -- starting ----------------------------------------------------------------------------------------------

    def _reason_to_stop(self, view: View) -> Stop | None:
        if self._interrupt.signal is not None:
            return Stop(reason=f"interrupted by {self._interrupt.signal.name}", grace_s=GRACE_S)
        return self._stopping.stop(view.trials, view.standing)

    def _stop_for(self, stop: Stop | None) -> None:
        """Stop for this reason; the first one stays, except that a signal is more urgent than everything else."""
        if stop is not None and (self._stop is None or (self._interrupt.count and self._stop.grace_s is None)):
            self._stop, self._stopped_at = stop, time.monotonic()

    def _fill_slots(self, view: View) -> str | None:
        """Start trials until all slots are taken; return why nothing will be started any more, or None."""
        while len(self._running) < self._executor.slots and not self._interrupt.count:
            claimable = self._not_ours(view.claimable)
            action = self._scheduler.next_action(view.trials, claimable, view.standing.limits.trials)
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
            except (NumberTakenError, BudgetSpentError, NotClaimableError, LeaseLostError) as error:
                _log.debug("another process was first: %s", error)
            view = self._study.look()
        return None

    def _not_ours(self, claimable: Sequence[Trial]) -> Sequence[Trial]:
        # After a long stop of this process its own leases may be over, though it works on: the keeper renews them.
        ours = {running.lease.trial_id for running in self._running.values()}
        return [trial for trial in claimable if trial.id not in ours]

    def _start(self, number: int, configuration: Configuration) -> None:
        lease = self._study.create_trial(
            number=number,
            configuration=configuration,
            distributions=self._distributions,
            owner=self._owner,
            ttl_s=LEASE_S,
        )
        with self._held(lease):
            self._submit(lease, configuration, None)

    def _start_queued(self, trial: Trial, configuration: Configuration) -> None:
        lease = self._study.start_queued(trial.id, configuration, self._distributions, owner=self._owner, ttl_s=LEASE_S)
        with self._held(lease):
            self._submit(lease, configuration, None)

    def _reject_queued(self, trial: Trial, reason: str) -> None:
        """End a queued trial that cannot be trained; it was asked for, so it takes its place in the budget."""
        space = self._spec.search_space
        fitting = {
            name: value
            for name, value in trial.configuration.items()
            if name in space.parameters and space.parameters[name].problem(value) is None
        }
        lease = self._study.start_queued(trial.id, fitting, self._distributions, owner=self._owner, ttl_s=LEASE_S)
        self._end_untrained(lease, trial, "user_error", reason)

    def _resume(self, trial: Trial) -> None:
        lease = self._study.claim(trial.id, owner=self._owner, ttl_s=LEASE_S)
        with self._held(lease):  # reading a checkpoint may take longer than a lease
            trial = self._study.trials()[trial.number]  # others may have had it, and lost it, since it was looked at
            if trial.losses > self._spec.max_retries:
                self._give_up(lease, trial)
            else:
                self._submit(lease, Configuration(trial.configuration), self._ledger.latest(trial))

    def _give_up(self, lease: Lease, trial: Trial) -> None:
        """End a trial whose process or machine was lost too often."""
        message = f"its process or machine was lost {trial.losses} times (--max-retries {self._spec.max_retries})"
        self._end_untrained(lease, trial, "lost", message)

    def _end_untrained(self, lease: Lease, trial: Trial, cause: str, message: str) -> None:
        self._study.tell(lease, TrialState.FAILED, cause=cause, attributes={"error": message})
        self._observe(
            TrialEnded(
                number=trial.number,
                state=TrialState.FAILED,
                epoch=trial.last_epoch,
                value=trial.reports.get(trial.last_epoch),
                cause=cause,
                message=message,
            )
        )
        self._ledger.trim(self._study.trials()[trial.number])

    def _refuse(self, action: Refuse) -> None:
        self._study.add_infeasible(
            number=action.number,
            configuration=action.configuration,
            distributions=self._distributions,
            cause=action.reason,
        )
        self._observe(TrialRefused(number=action.number, reason=action.reason))

    @contextmanager
    def _held(self, lease: Lease) -> Iterator[None]:
        """Keep a new lease; give the trial back when it does not come to run."""
        self._keeper.add(lease)
        try:
            yield
        except BaseException:
            self._keeper.discard(lease)
            self._give_back(lease)
            raise
        if not any(running.lease == lease for running in self._running.values()):
            self._keeper.discard(lease)  # it was ended at once

    def _give_back(self, lease: Lease) -> None:
        try:
            self._study.pause(lease, patience_s=FAREWELL_S)
        except (LeaseLostError, StorageError) as error:
            # What is on its way already is to be told; the lease ends by itself.
            _log.warning("trial=%d cannot be given back: %s", lease.number, error)

    def _submit(self, lease: Lease, configuration: Configuration, checkpoint: CheckpointRecord | None) -> None:
        task = train_task(self._spec, self._artifacts, lease, configuration, checkpoint)
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
        kept = KeptReport(
            epoch=report.epoch,
            value=float(report.metrics[self._spec.metric]),
            metrics=numbers_in(report.metrics),
            checkpoint=ledger_row(report, running.lease),
        )
        view = self._store_report(running, kept)
        self._stop_for(self._reason_to_stop(view))
        trial = view.trials[running.lease.number]
        self._observe(EpochReported(number=trial.number, epoch=kept.epoch, value=kept.value))
        decision = self._scheduler.decide(trial, view.trials)
        if decision is Decision.CONTINUE and self._stop is not None:
            decision = Decision.PAUSE
        self._executor.decide(running.job, decision)
        self._ledger.trim(trial)

    def _store_report(self, running: _Running, report: KeptReport) -> View:
        """Store what an epoch has brought; what the database cannot take is kept, and the trial rests after it."""
        try:
            return report.store(self._study, running.lease)
        except StorageError as error:
            self._executor.cancel(running.job)
            place = self._keep(running, TrialState.PAUSED, report=report)
            raise type(error)(f"{error}; {place}") from error

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
        """End a trial as FAILED; one that is not to blame goes on: a lost one at once, one with a full disk later."""
        number = running.lease.number
        if failure.cause == "disk_full":
            self._stop_for_full_disk(running, failure)
            return
        if failure.cause == "lost" and self._study.trials()[number].losses < self._spec.max_retries:
            _log.warning("trial=%d attempt=%d %s; trying again", number, running.lease.attempt, failure)
            self._pause(running, is_lost=True)
            return
        self._end(running, TrialState.FAILED, failure=failure)
        in_a_row = failures_in_a_row(self._study.trials(), self._stopping.began_at)
        if in_a_row >= self._spec.max_failures and self._stop is None:
            limit = self._spec.max_failures
            self._stop_as_failed(
                f"the last {in_a_row} trials failed (--max-failures {limit}), trial {number}: {failure}"
            )

    def _stop_for_full_disk(self, running: _Running, failure: Failure) -> None:
        """Start nothing more: every trial would fail alike. What runs is paused at its next report."""
        self._pause(running)
        place = f" of {failure.host}" if failure.host else ""
        self._stop_as_failed(
            f"the disk{place} is full (trial {running.lease.number}: {failure.message}; artifacts lie in "
            f"{self._artifacts.root}); free some space and go on"
        )

    def _stop_as_failed(self, reason: str) -> None:
        self._has_failed = True
        self._stop_for(Stop(reason=reason))

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
        cause = None if failure is None else failure.cause
        try:
            self._study.tell(running.lease, state, value=value, cause=cause, attributes=attributes)
        except StorageError as error:
            place = self._keep(running, state, value, cause, attributes)
            raise type(error)(f"{error}; {place}") from error
        self._forget(running)
        self._observe(
            TrialEnded(
                number=trial.number,
                state=state,
                epoch=trial.last_epoch,
                value=value if value is not None else trial.reports.get(trial.last_epoch),
                cause=cause,
                message="" if failure is None else failure.message,
            )
        )
        self._ledger.trim(self._study.trials()[trial.number])
        best = self._study.best_trial()
        if epoch is not None and value is not None and best is not None and best.number == trial.number:
            self._observe(NewBest(number=trial.number, value=value, epoch=epoch))

    def _keep(
        self,
        running: _Running,
        state: TrialState,
        value: float | None = None,
        cause: str | None = None,
        attributes: Mapping[str, object] | None = None,
        report: KeptReport | None = None,
    ) -> str:
        """Keep what the database could not take on this machine; where it lies, in words."""
        result = KeptResult(
            lease=running.lease, state=state, value=value, cause=cause, attributes=attributes or {}, report=report
        )
        number = running.lease.number
        try:
            path = self._outbox.keep(result)
        except OSError as error:
            return f"trial {number} will go on from its last checkpoint, as this cannot be kept either: {error}"
        self._forget(running)
        return f"what became of trial {number} lies in {path}, and the next run of the study on this machine stores it"

    def _pause(self, running: _Running, *, is_lost: bool = False) -> None:
        self._study.pause(running.lease, is_lost=is_lost, patience_s=self._patience_s)
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
        """Whether running trials have had their time to reach the end of an epoch, or a second signal came."""
        if self._stop is None or self._interrupt.count > 1:
            return self._interrupt.count > 1
        return self._stop.grace_s is not None and time.monotonic() - self._stopped_at > self._stop.grace_s

    def _let_go(self) -> None:
        """Give back what is still running, so that the next process can go on with it at once."""
        for running in list(self._running.values()):
            self._executor.cancel(running.job)
            try:
                self._pause(running)
            except LeaseLostError as error:
                _log.debug("trial=%d is no longer ours: %s", running.lease.number, error)
            except StorageError as error:
                # An error that is on its way already is the one to be told.
                place = self._keep(running, TrialState.PAUSED)
                _log.warning("trial=%d cannot be given back: %s; %s", running.lease.number, error, place)
                self._patience_s = FAREWELL_S
