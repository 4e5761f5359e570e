"""What becomes of running trials is stored in the background; what the database cannot take is kept on this machine."""

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial

from automl.asking import FAREWELL_S
from automl.background import BackgroundWork
from automl.events import Event, TrialEnded
from automl.executors.base import Executor
from automl.outbox import KeptReport, KeptResult, Outbox
from automl.running import LiveTrial, LiveTrials
from studies.checkpoints import CheckpointLedger
from studies.errors import LeaseLostError, StorageError, StudyError
from studies.study import Study, View
from studies.trial import Trial, TrialState

__all__ = ["TrialStore"]

LAST_WAIT_S = 2.0
"""How long the end of a search waits for what is being stored; what is left is kept for the next run."""

_log = logging.getLogger(__name__)


class TrialStore:
    """Stores reports and ends, each trial's in order; what follows is called when the database has them.

    Args:
        study: where the trials are remembered.
        executor: trains them.
        live: the trials that run.
        background: does the storing.
        removals: removes files meanwhile, so that a slow store of files holds up no report.
        ledger: knows which files.
        outbox: takes what the database cannot.
        see: is shown every look at the study.
        observe: is told everything that changes.
    """

    def __init__(
        self,
        *,
        study: Study,
        executor: Executor,
        live: LiveTrials,
        background: BackgroundWork,
        removals: BackgroundWork,
        ledger: CheckpointLedger,
        outbox: Outbox,
        see: Callable[[View], None],
        observe: Callable[[Event], None],
    ) -> None:
        self._study = study
        self._executor = executor
        self._live = live
        self._background = background
        self._removals = removals
        self._untrimmed: dict[int, Trial] = {}  # as they stood last, of those whose turn has not come
        self._ledger = ledger
        self._outbox = outbox
        self._see = see
        self._observe = observe

    def report(self, live: LiveTrial, report: KeptReport, then: Callable[[View], None]) -> None:
        """Store what an epoch has brought; `then` gets the study as it stands with it."""
        self._store(live, _rest(live, report), lambda: report.store(self._study, live.lease), then)

    def note(self, live: LiveTrial, facts: Mapping[str, object], then: Callable[[View], None]) -> None:
        """Store facts on a trial that is ours still, for whoever goes on with it."""
        self._store(live, _rest(live, attributes=facts), partial(self._note, live, facts), then)

    def end(
        self,
        live: LiveTrial,
        state: TrialState,
        *,
        value: float | None = None,
        cause: str | None = None,
        message: str = "",
        attributes: Mapping[str, object],
        then: Callable[[Trial, View], None] = lambda trial, view: None,
    ) -> None:
        """End a trial.

        Args:
            live: the trial.
            state: COMPLETE, PRUNED or FAILED.
            value: the objective of a COMPLETE trial.
            cause: why it FAILED, one word.
            message: the text of the error.
            attributes: facts about it, plain JSON.
            then: is called with the ended trial.
        """
        end = KeptResult(lease=live.lease, state=state, value=value, cause=cause, attributes=attributes)

        def leave(view: View) -> None:
            trial = view.trials[live.number]
            self._leave(live, end, trial, message)
            self.trim(trial)
            then(trial, view)

        self._store(live, end, partial(self._end, end), leave)

    def pause(self, live: LiveTrial, *, is_lost: bool = False, facts: Mapping[str, object] | None = None) -> None:
        """Let a trial rest; whoever is free goes on with it, and finds these facts on it."""
        rest = _rest(live, attributes=facts, is_lost=is_lost)
        work = partial(self._end, rest)
        self._store(live, rest, work, lambda view: self._leave(live, rest, view.trials[live.number]))

    def trim(self, trial: Trial) -> None:
        """Remove the checkpoints that are not needed any more, when there is time."""
        self._untrimmed[trial.id] = trial
        self._removals.put(trial.id, partial(self._trim, trial.id))

    def cancel(self, live: LiveTrial) -> None:
        """Let the executor end a training."""
        live.is_cancelled = True
        if live.job is not None:
            self._executor.cancel(live.job)

    def abandon(self, live: LiveTrial, why: str) -> None:
        """Stop a trial that belongs to another process now."""
        _log.warning("trial=%d %s; it goes on elsewhere", live.number, why)
        self.cancel(live)
        self._live.forget(live)

    def let_go(self, patience_s: float | None) -> None:
        """Give back what is still running, so that the next process can go on with it at once.

        Args:
            patience_s: how long the database is asked; None: as long as always.
        """
        for live in self._live:
            self._cancel_surely(live)
        try:
            self._wait_for_the_rest()
        finally:
            self._give_all_back(patience_s)

    # In a thread

    def _end(self, end: KeptResult) -> View:
        end.store(self._study)
        return self._study.look()

    def _note(self, live: LiveTrial, facts: Mapping[str, object]) -> View:
        self._study.note(live.lease, facts)
        return self._study.look()

    def _trim(self, trial_id: int) -> None:
        trial = self._untrimmed.pop(trial_id, None)
        if trial is not None:  # otherwise it was done with what came before
            self._ledger.trim(trial)

    # In the thread of the search

    def _store(
        self, live: LiveTrial, storing: KeptResult, work: Callable[[], View], then: Callable[[View], None]
    ) -> None:
        live.storing = storing
        self._background.put(live.lease.trial_id, work, partial(self._stored, live, storing, then))

    def _stored(self, live: LiveTrial, storing: KeptResult, then: Callable[[View], None], ended: Future[View]) -> None:
        if live not in self._live:
            return  # it was given up meanwhile
        live.storing = None
        try:
            view = ended.result()
        except LeaseLostError as error:
            self.abandon(live, str(error))
        except StorageError as error:
            self._cancel_surely(live)
            raise type(error)(f"{error}; {self._keep(live, storing)}") from error
        else:
            self._see(view)
            then(view)

    def _leave(self, live: LiveTrial, end: KeptResult, trial: Trial, message: str = "") -> None:
        self._live.forget(live)
        self._observe(TrialEnded.of(trial, end.state, value=end.value, cause=end.cause, message=message))

    def _keep(self, live: LiveTrial, result: KeptResult) -> str:
        """Keep what the database could not take on this machine; where it lies, in words."""
        number = live.number
        try:
            path = self._outbox.keep(result)
        except OSError as error:
            return f"trial {number} will go on from its last checkpoint, as this cannot be kept either: {error}"
        self._live.forget(live)
        return f"what became of trial {number} lies in {path}, and the next run of the study on this machine stores it"

    def _cancel_surely(self, live: LiveTrial) -> None:
        """Let the executor end a training; where it cannot, what is to be stored is stored all the same."""
        try:
            self.cancel(live)
        except Exception as error:
            # An error that is on its way already is the one to be told; closing the executor ends the training.
            _log.warning("trial=%d its training cannot be ended: %s: %s", live.number, type(error).__name__, error)
            _log.debug("trial=%d", live.number, exc_info=error)

    def _wait_for_the_rest(self) -> None:
        """Wait a moment for what is being stored and removed, and for what follows that."""
        ends_at = time.monotonic() + LAST_WAIT_S
        for work in (self._background, self._removals):
            while not work.is_idle and (left_s := ends_at - time.monotonic()) > 0:
                work.wait(left_s)
                try:
                    work.settle()
                except StudyError as error:
                    # An error that is on its way already is the one to be told.
                    _log.warning("%s", error)

    def _give_all_back(self, patience_s: float | None) -> None:
        for live in self._live:
            if live.storing is not None:
                _log.warning("trial=%d is not stored yet; %s", live.number, self._keep(live, live.storing))
                patience_s = FAREWELL_S
            elif not self._give_back(live, patience_s):
                patience_s = FAREWELL_S

    def _give_back(self, live: LiveTrial, patience_s: float | None) -> bool:
        """Give a trial back, or keep that it rests; whether the database has answered."""
        rest = _rest(live)
        try:
            self._study.pause(live.lease, patience_s=patience_s)
            trial = self._study.trials()[live.number]
        except LeaseLostError as error:
            _log.debug("trial=%d is no longer ours: %s", live.number, error)
            return True
        except StorageError as error:
            # An error that is on its way already is the one to be told.
            _log.warning("trial=%d cannot be given back: %s; %s", live.number, error, self._keep(live, rest))
            return False
        self._leave(live, rest, trial)
        return True


def _rest(
    live: LiveTrial,
    report: KeptReport | None = None,
    *,
    attributes: Mapping[str, object] | None = None,
    is_lost: bool = False,
) -> KeptResult:
    return KeptResult(
        lease=live.lease, state=TrialState.PAUSED, attributes=attributes or {}, report=report, is_lost=is_lost
    )
