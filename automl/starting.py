"""Brings trials from the study to the executor."""

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

from automl.artifacts import Artifacts
from automl.asking import Asked, Asker
from automl.background import BackgroundWork
from automl.events import Event, TrialStarted
from automl.executors.base import Executor
from automl.inheritance import Origin, find_origin
from automl.memory import ACCUMULATE, kept_number
from automl.running import LiveTrial, LiveTrials
from automl.scheduler import Prune, Resume, Step
from automl.spec import SearchSpec
from automl.stop_sign import StopSign
from automl.storing import TrialStore
from automl.tasks import train_task
from studies.checkpoints import CheckpointLedger
from studies.study import Study

__all__ = ["Starter"]


class Starter:
    """Starts trials, goes on with interrupted ones, and lets those end that cannot be trained.

    The checkpoint that a trial goes on from, or whose weights it begins with, is read as a whole to see that it is,
    which may take minutes. That is done in the background; the trial is ours meanwhile and takes its slot.

    Args:
        spec: what is searched.
        study: where it is remembered.
        asker: takes trials from there.
        executor: trains.
        live: is given each trial that runs.
        store: lets trials rest that are not needed any more.
        finds: looks for checkpoints.
        ledger: knows them.
        artifacts: where files lie.
        sign: tells when nothing is to be started any more.
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
        store: TrialStore,
        finds: BackgroundWork,
        ledger: CheckpointLedger,
        artifacts: Artifacts,
        sign: StopSign,
        observe: Callable[[Event], None],
    ) -> None:
        self._spec = spec
        self._study = study
        self._asker = asker
        self._executor = executor
        self._live = live
        self._store = store
        self._finds = finds
        self._ledger = ledger
        self._artifacts = artifacts
        self._sign = sign
        self._observe = observe

    def carry_out(self, action: Step) -> None:
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
        if asked is None and isinstance(action, Resume | Prune):
            self._store.trim(self._study.trials()[action.trial.number])  # it has ended

    def try_again(self, live: LiveTrial, accumulate: int) -> None:
        """Train a trial whose job has ended from its last checkpoint on, in the same attempt, in smaller parts."""
        live.job = None
        self._look_for_checkpoint(live, partial(self._submit, live, accumulate))

    def _train(self, asked: Asked) -> None:
        live = LiveTrial(lease=asked.lease, configuration=asked.configuration, parent=asked.parent)
        if asked.earlier is None and asked.parent is None:
            self._begin(live, 1, Origin())
            self._live.add(live)
        else:
            parts = 1 if asked.earlier is None else kept_number(asked.earlier, ACCUMULATE, 1)
            self._live.add(live)
            self._look_for_checkpoint(live, partial(self._begin, live, parts))

    def _look_for_checkpoint(self, live: LiveTrial, then: Callable[[Origin], None]) -> None:
        work = partial(find_origin, self._ledger, self._study, live.lease, live.parent)
        self._finds.put(live.lease.trial_id, work, partial(self._go_on, live, then))

    def _go_on(
        self,
        live: LiveTrial,
        then: Callable[[Origin], None],
        found: Future[Origin],
    ) -> None:
        if live not in self._live or live.is_cancelled:
            return  # it is given up, or given back
        origin = found.result()
        if self._sign.stop is not None:
            self._store.pause(live)
        else:
            then(origin)

    def _begin(self, live: LiveTrial, accumulate: int, origin: Origin) -> None:
        self._submit(live, accumulate, origin)
        self._observe(
            TrialStarted(
                number=live.number,
                attempt=live.lease.attempt,
                epoch=0 if origin.own is None else origin.own.epoch,
                epochs=self._spec.epochs,
            )
        )

    def _submit(self, live: LiveTrial, accumulate: int, origin: Origin) -> None:
        task = train_task(self._spec, self._artifacts, live.lease, live.configuration, origin, accumulate=accumulate)
        live.job = self._executor.submit(task)
