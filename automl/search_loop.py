"""The loop of a search: start what the scheduler wants, carry reports up and decisions down, and nothing else."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from automl.artifacts import Artifacts
from automl.asking import FAREWELL_S, TAKEN_ELSEWHERE, Asker
from automl.background import BackgroundWork
from automl.events import Event, SlotsChanged
from automl.executors.base import Executor
from automl.interrupt import Interrupt
from automl.outbox import Outbox
from automl.outcomes import Outcomes
from automl.running import LiveTrials
from automl.scheduler import Action, Done, Prune, Scheduler, Step, Wait
from automl.spec import SearchSpec
from automl.starting import Starter
from automl.stop_sign import StopSign
from automl.stopping import StoppingRule
from automl.storing import TrialStore
from studies.checkpoints import CheckpointLedger
from studies.errors import StorageError
from studies.leases import LeaseKeeper
from studies.study import Study, View
from studies.trial import Trial

__all__ = ["LEASE_S", "Ending", "SearchLoop"]

LEASE_S = 90.0
"""How long a trial stays ours without a sign of life: longer than a database may be away."""
POLL_S = 0.5
"""Longest wait for an event, so that signals, limits and other machines are noticed."""
FINDERS = 2
"""How many checkpoints are read at a time to see whether trials can go on from them."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Why a search ended, in words, and whether because too many trials failed one after the other."""

    reason: str
    has_failed: bool


class SearchLoop:
    """Drives one study until its budget is spent, a limit is reached, or a signal comes.

    One thread takes all decisions. What has to wait for the database or for files on the way of one trial waits in the
    background, so that it holds up no other one.
    """

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
        self._study = study
        self._scheduler = scheduler
        self._executor = executor
        self._keeper = keeper
        self._interrupt = interrupt
        self._observe = observe
        self._live = LiveTrials(keeper)
        self._sign = StopSign(StoppingRule(direction=spec.objective_direction, began_at=began_at), interrupt)
        self._background = BackgroundWork(study.writers, executor.wake)
        self._removals = BackgroundWork(1, executor.wake)
        self._finds = BackgroundWork(FINDERS, executor.wake)
        asker = Asker(
            study,
            spec.search_space,
            keeper,
            owner=owner,
            lease_s=LEASE_S,
            max_retries=spec.max_retries,
            observe=observe,
        )
        self._store = TrialStore(
            study=study,
            executor=executor,
            live=self._live,
            background=self._background,
            removals=self._removals,
            ledger=ledger,
            outbox=outbox,
            see=self._see,
            observe=observe,
        )
        self._starter = Starter(
            spec=spec,
            study=study,
            asker=asker,
            executor=executor,
            live=self._live,
            store=self._store,
            finds=self._finds,
            ledger=ledger,
            artifacts=artifacts,
            sign=self._sign,
            observe=observe,
        )
        self._outcomes = Outcomes(
            spec=spec,
            study=study,
            scheduler=scheduler,
            executor=executor,
            live=self._live,
            starter=self._starter,
            store=self._store,
            artifacts=artifacts,
            sign=self._sign,
            observe=observe,
        )
        self._slots = executor.concurrency
        self._waits_since = -1
        self._needs_place = False
        self._lacks = False
        self._view: View | None = None
        self._seen_at = 0.0
        self._is_new = False

    def run(self) -> Ending:
        """Search until there is a reason to end; nothing of this process is RUNNING afterwards."""
        patience_s: float | None = None
        try:
            while True:
                reason = self._start_what_fits()
                if reason is not None and (self._is_at_rest or self._sign.is_grace_over):
                    return Ending(reason=reason, has_failed=self._sign.has_failed or self._lacks)
                for event in self._executor.events(POLL_S):
                    self._outcomes.take(event)
                for work in self._works:
                    work.settle()
                self._outcomes.take_waiting()
                self._give_up_lost_trials()
        except StorageError:
            patience_s = FAREWELL_S  # it was waited for long enough
            raise
        finally:
            self._store.let_go(patience_s)
            for work in self._works:
                work.close()

    @property
    def _works(self) -> Sequence[BackgroundWork]:
        return self._background, self._removals, self._finds

    def _see(self, view: View) -> None:
        self._view, self._seen_at, self._is_new = view, time.monotonic(), True
        self._sign.heed(view)

    def _start_what_fits(self) -> str | None:
        """Start trials until all slots are taken; return why nothing will be started any more, or None."""
        self._notice_slots()
        view = self._present_view()
        self._executor.wants_more = self._may_start_more(view)
        if not self._executor.wants_more and self._sign.stop is None:
            return self._reason_without_room(view)
        while self._has_room:
            action, self._needs_place = self._next_action(view), False
            if isinstance(action, Wait | Done):
                self._waits_since = len(view.trials)
                return self._done(action) if isinstance(action, Done) else None
            self._carry_out(action)
            view = self._study.look()
        return None if self._sign.stop is None else self._sign.stop.reason

    def _present_view(self) -> View:
        """The look that came with the last report or end; a new one where that is too old for what is to be done."""
        view, is_new, self._is_new = self._view, self._is_new, False
        is_late = time.monotonic() - self._seen_at >= POLL_S
        if view is None or is_late or (self._has_room and not is_new):
            view = self._study.look()
            self._see(view)
            self._is_new = False
        else:
            self._sign.heed(view)  # a signal may have come
        return view

    @property
    def _has_room(self) -> bool:
        is_to_end = self._sign.stop is not None or self._interrupt.count > 0
        return not is_to_end and len(self._live) < self._executor.slots

    def _next_action(self, view: View) -> Action:
        return self._scheduler.next_action(view.trials, self._not_ours(view.claimable), view.standing.limits.trials)

    def _reason_without_room(self, view: View) -> str | None:
        """Why nothing will be started any more, asked while no place is kept for it; None: others may change that."""
        action = self._next_action(view)
        if isinstance(action, Done):
            return self._done(action)
        if isinstance(action, Prune):
            self._carry_out(action)  # it needs no place
        elif not isinstance(action, Wait):
            self._needs_place = True
        return None

    def _done(self, action: Done) -> str:
        self._lacks = action.lacks
        return action.reason

    def _carry_out(self, action: Step) -> None:
        try:
            self._starter.carry_out(action)
        except TAKEN_ELSEWHERE as error:
            _log.debug("another process was first: %s", error)

    def _may_start_more(self, view: View) -> bool:
        """Whether places for more trials are of use: the budget has some left, and there was something to start."""
        if self._sign.stop is not None:
            return False
        budget = view.standing.limits.trials
        has_budget = budget is None or view.claimed < budget
        if self._needs_place or (has_budget and len(view.trials) != self._waits_since):
            return True
        return self._scheduler.resumed(view.trials, self._not_ours(view.claimable)) is not None

    @property
    def _is_at_rest(self) -> bool:
        return not self._live and all(work.is_idle for work in self._works)

    def _notice_slots(self) -> None:
        """Tell how many trials can run at once when machines have joined or left."""
        slots = self._executor.concurrency
        if slots != self._slots:
            self._slots = slots
            self._observe(SlotsChanged(slots=slots))

    def _not_ours(self, claimable: Sequence[Trial]) -> Sequence[Trial]:
        # After a long stop of this process its own leases may be over, though it works on: the keeper renews them.
        ours = {live.lease.trial_id for live in self._live}
        return [trial for trial in claimable if trial.id not in ours]

    def _give_up_lost_trials(self) -> None:
        for lease in self._keeper.lost():
            live = self._live.holding(lease)
            # A trial that is being stored may just have ended: whether its lease held the database tells by itself.
            if live is not None and live.storing is None:
                self._store.abandon(live, "lease lost")
