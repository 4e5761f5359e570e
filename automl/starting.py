"""Brings trials from the study to the executor."""

from collections.abc import Callable

from automl.artifacts import Artifacts
from automl.asking import Asked, Asker
from automl.events import Event, TrialStarted
from automl.executors.base import Executor, Job
from automl.memory import ACCUMULATE, kept_number
from automl.running import LiveTrial, LiveTrials
from automl.scheduler import Refuse, RejectQueued, Resume, Start, StartQueued
from automl.spec import SearchSpec
from automl.tasks import train_task
from search_spaces.configuration import Configuration
from studies.checkpoints import CheckpointLedger
from studies.study import Study
from studies.trial import CheckpointRecord, Lease

__all__ = ["Starter"]


class Starter:
    """Starts trials, goes on with interrupted ones, and lets those end that cannot be trained.

    Args:
        spec: what is searched.
        study: where it is remembered.
        asker: takes trials from there.
        executor: trains.
        live: is given each trial that runs.
        ledger: finds and removes checkpoints.
        artifacts: where files lie.
        observe: is told which trials have started.
    """

    def __init__(
        self,
        *,
        spec: SearchSpec,
        study: Study,
        asker: Asker,
        executor: Executor,
        live: LiveTrials,
        ledger: CheckpointLedger,
        artifacts: Artifacts,
        observe: Callable[[Event], None],
    ) -> None:
        self._spec = spec
        self._study = study
        self._asker = asker
        self._executor = executor
        self._live = live
        self._ledger = ledger
        self._artifacts = artifacts
        self._observe = observe

    def carry_out(self, action: Start | StartQueued | RejectQueued | Resume | Refuse) -> None:
        """Do what the scheduler wants.

        Raises:
            NumberTakenError: another process was first; look again.
            BudgetSpentError: likewise.
            NotClaimableError: likewise.
            LeaseLostError: likewise.
        """
        with self._asker.take(action) as asked:
            if asked is not None:
                self._train(asked)
        if asked is None and isinstance(action, Resume):
            self._ledger.trim(self._study.trials()[action.trial.number])  # it has ended

    def try_again(self, live: LiveTrial, accumulate: int) -> None:
        """Train a trial whose job has ended from its last checkpoint on, in the same attempt, in smaller parts."""
        checkpoint = self._ledger.latest(live.lease)
        configuration = Configuration(live.job.task.configuration)
        self._live.replace_job(live, self._submit(live.lease, configuration, checkpoint, accumulate))

    def _train(self, asked: Asked) -> None:
        lease, earlier = asked.lease, asked.earlier
        # Reading a checkpoint may take longer than a lease, which is kept meanwhile.
        checkpoint = None if earlier is None else self._ledger.latest(earlier)
        accumulate = 1 if earlier is None else kept_number(earlier, ACCUMULATE, 1)
        job = self._submit(lease, asked.configuration, checkpoint, accumulate)
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
