"""What a Tune program trains next: a new proposal, or a trial that others or Tune itself have left."""

import logging

from automl.asking import TAKEN_ELSEWHERE, Asker
from automl.events import Event, TrialEnded, TrialRefused
from automl.integrations.ray_tune.held import HeldTrials
from automl.integrations.ray_tune.program_end import ProgramEnd
from automl.scheduler import Action, Done, Scheduler, Step, Wait
from search_spaces.configuration import Configuration
from studies.errors import LeaseLostError, NotClaimableError, TrialNotFoundError
from studies.study import Study, View

__all__ = ["TuneAsking", "log_untrained"]

_log = logging.getLogger(__name__)


class TuneAsking:
    """Asks the study for one Tune program; used by one thread.

    Args:
        study: where the trials are.
        scheduler: proposes.
        asker: takes the trials.
        held: is given them, by Tune's names.
        end: says when there is an end.
    """

    def __init__(self, study: Study, scheduler: Scheduler, asker: Asker, held: HeldTrials, end: ProgramEnd) -> None:
        self._study = study
        self._scheduler = scheduler
        self._asker = asker
        self._held = held
        self._end = end

    def ask(self, tune_id: str) -> Configuration | Wait | Done:
        """The configuration of the next trial, which is held from now on under this name."""
        while True:
            view = self._study.look()
            if (reason := self._end.reason(view)) is not None:
                return Done(reason=reason)
            action = self._next_action(view)
            if isinstance(action, Done):
                return action
            if isinstance(action, Wait):
                # Tune cannot be interrupted while it waits for a proposal with nothing to train.
                is_idle = self._held.is_empty
                return Done(reason="every trial that is left is held by other processes") if is_idle else action
            configuration = self._taken(tune_id, action)
            if configuration is not None:
                return configuration

    def go_on(self, tune_id: str) -> bool:
        """Take a left trial back; False: it has ended, or another process has it, so that Tune must not train it."""
        trial_id = self._held.pop_left(tune_id)
        if trial_id is None:
            return False
        try:
            with self._asker.claim(trial_id) as asked:
                if asked is not None:
                    self._held.hold(tune_id, asked.lease)
        except (NotClaimableError, LeaseLostError, TrialNotFoundError) as error:
            _log.warning("Ray Tune's trial %s is not trained: %s", tune_id, error)
        return tune_id in self._held

    def _next_action(self, view: View) -> Action:
        others = {*self._held.names().values()}
        claimable = [trial for trial in view.claimable if trial.id not in others]
        if claimable:
            # Their training goes on from a checkpoint that only `automl` can read.
            theirs = self._study.trials_with_checkpoints()
            claimable = [trial for trial in claimable if trial.id not in theirs]
        return self._scheduler.next_action(view.trials, claimable, view.standing.limits.trials)

    def _taken(self, tune_id: str, action: Step) -> Configuration | None:
        """What to train; None: what cannot be trained was recorded, or another process was first."""
        try:
            with self._asker.take(action) as asked:
                if asked is None:
                    return None
                self._held.hold(tune_id, asked.lease)
                return asked.configuration
        except TAKEN_ELSEWHERE as error:
            _log.debug("another process was first: %s", error)
            return None


def log_untrained(event: Event) -> None:
    """Say which trials Tune never hears of."""
    match event:
        case TrialRefused():
            _log.info("trial=%d infeasible: %s", event.number, event.reason)
        case TrialEnded():
            _log.warning("trial=%d %s cause=%s: %s", event.number, event.state.value, event.cause, event.message)
