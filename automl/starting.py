"""Carries out what the scheduler wants: trials come into the database, get a lease and go to the executor."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from automl.artifacts import Artifacts
from automl.events import Event, TrialEnded, TrialRefused, TrialStarted
from automl.executors.base import Executor, Job
from automl.memory import ACCUMULATE, kept_number
from automl.running import LiveTrial, LiveTrials
from automl.scheduler import Refuse, RejectQueued, Resume, Start, StartQueued
from automl.spec import SearchSpec
from automl.tasks import train_task
from search_spaces.configuration import Configuration
from studies.checkpoints import CheckpointLedger
from studies.errors import LeaseLostError, StorageError
from studies.leases import LeaseKeeper
from studies.study import Study
from studies.trial import CheckpointRecord, Lease, Trial, TrialState

__all__ = ["Starter"]

FAREWELL_S = 1.0
"""How long the database is asked to take back a trial that does not come to run."""

_log = logging.getLogger(__name__)


class Starter:
    """Starts trials, goes on with interrupted ones, and refuses those that cannot be trained.

    Args:
        spec: what is searched.
        study: where it is remembered.
        executor: trains.
        keeper: keeps the leases.
        live: is given each trial that runs.
        ledger: finds checkpoints.
        artifacts: where files lie.
        owner: this process.
        lease_s: how long a lease lasts.
        observe: is told everything that changes.
    """

    def __init__(
        self,
        *,
        spec: SearchSpec,
        study: Study,
        executor: Executor,
        keeper: LeaseKeeper,
        live: LiveTrials,
        ledger: CheckpointLedger,
        artifacts: Artifacts,
        owner: str,
        lease_s: float,
        observe: Callable[[Event], None],
    ) -> None:
        self._spec = spec
        self._study = study
        self._executor = executor
        self._keeper = keeper
        self._live = live
        self._ledger = ledger
        self._artifacts = artifacts
        self._owner = owner
        self._lease_s = lease_s
        self._observe = observe
        self._distributions = spec.search_space.distributions()

    def carry_out(self, action: Start | StartQueued | RejectQueued | Resume | Refuse) -> None:
        """Do what the scheduler wants.

        Raises:
            NumberTakenError: another process was first; look again.
            BudgetSpentError: likewise.
            NotClaimableError: likewise.
            LeaseLostError: likewise.
        """
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

    def try_again(self, live: LiveTrial, accumulate: int) -> None:
        """Train a trial whose job has ended from its last checkpoint on, in the same attempt, in smaller parts."""
        checkpoint = self._ledger.latest(live.lease)
        configuration = Configuration(live.job.task.configuration)
        self._live.replace_job(live, self._submit(live.lease, configuration, checkpoint, accumulate))

    def _start(self, number: int, configuration: Configuration) -> None:
        lease = self._study.create_trial(
            number=number,
            configuration=configuration,
            distributions=self._distributions,
            owner=self._owner,
            ttl_s=self._lease_s,
        )
        with self._held(lease):
            self._train(lease, configuration, None)

    def _start_queued(self, trial: Trial, configuration: Configuration) -> None:
        with self._held(self._lease_of_queued(trial, configuration)) as lease:
            self._train(lease, configuration, None)

    def _reject_queued(self, trial: Trial, reason: str) -> None:
        """End a queued trial that cannot be trained; it was asked for, so it takes its place in the budget."""
        lease = self._lease_of_queued(trial, self._spec.search_space.fitting_part(trial.configuration))
        self._end_untrained(lease, trial, "user_error", reason)

    def _lease_of_queued(self, trial: Trial, configuration: Configuration) -> Lease:
        return self._study.start_queued(
            trial.id, configuration, self._distributions, owner=self._owner, ttl_s=self._lease_s
        )

    def _resume(self, trial: Trial) -> None:
        with self._held(self._study.claim(trial.id, owner=self._owner, ttl_s=self._lease_s)) as lease:
            # Reading a checkpoint may take longer than a lease. Others may have had the trial since it was looked at.
            trial = self._study.trials()[trial.number]
            if trial.losses > self._spec.max_retries:
                self._give_up(lease, trial)
            else:
                accumulate = kept_number(trial, ACCUMULATE, 1)
                self._train(lease, Configuration(trial.configuration), self._ledger.latest(trial), accumulate)

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
    def _held(self, lease: Lease) -> Iterator[Lease]:
        """Keep a new lease; give the trial back when it does not come to run."""
        self._keeper.add(lease)
        try:
            yield lease
        except BaseException:
            self._keeper.discard(lease)
            self._give_back(lease)
            raise
        if self._live.holding(lease) is None:
            self._keeper.discard(lease)  # it was ended at once

    def _give_back(self, lease: Lease) -> None:
        try:
            self._study.pause(lease, patience_s=FAREWELL_S)
        except (LeaseLostError, StorageError) as error:
            # What is on its way already is to be told; the lease ends by itself.
            _log.warning("trial=%d cannot be given back: %s", lease.number, error)

    def _train(
        self, lease: Lease, configuration: Configuration, checkpoint: CheckpointRecord | None, accumulate: int = 1
    ) -> None:
        job = self._submit(lease, configuration, checkpoint, accumulate)
        self._live.add(LiveTrial(job=job, lease=lease))
        self._observe(
            TrialStarted(
                number=lease.number,
                attempt=lease.attempt,
                epoch=0 if checkpoint is None else checkpoint.epoch,
                epochs=self._spec.epochs,
            )
        )

    def _submit(
        self, lease: Lease, configuration: Configuration, checkpoint: CheckpointRecord | None, accumulate: int
    ) -> Job:
        task = train_task(self._spec, self._artifacts, lease, configuration, checkpoint, accumulate=accumulate)
        return self._executor.submit(task)
