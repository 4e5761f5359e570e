"""The next trial to train: what the scheduler wants, made true in the study. How it is trained is not known here.

"Ask" is the word of ask-and-tell interfaces, as in Optuna. Asking writes: it creates a trial, starts a queued one,
takes over an interrupted one, or records why one cannot be trained.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from automl.scheduler import Done, Refuse, RejectQueued, Resume, Scheduler, Start, StartQueued, Wait
from search_spaces.configuration import Configuration
from studies.errors import BudgetSpentError, LeaseLostError, NotClaimableError, NumberTakenError
from studies.study import Study, View
from studies.trial import Lease, Trial, TrialState

__all__ = ["Asked", "Asker"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A trial that is this process's to train.

    Attributes:
        lease: the right to write to it.
        configuration: what to train.
    """

    lease: Lease
    configuration: Configuration


class Asker:
    """Asks one scheduler for one study, on behalf of one process.

    Args:
        study: where trials are created and claimed.
        scheduler: says what to do next.
        owner: this process; see `process_identity`.
        lease_s: how long a lease lasts without a sign of life, in seconds.
        max_retries: how often a trial is started again after its process or machine was lost.
    """

    def __init__(self, study: Study, scheduler: Scheduler, *, owner: str, lease_s: float, max_retries: int) -> None:
        self._study = study
        self._scheduler = scheduler
        self._owner = owner
        self._lease_s = lease_s
        self._max_retries = max_retries
        self._distributions = scheduler.space.distributions()

    def ask(self, view: View, claimable: Sequence[Trial]) -> Asked | Wait | Done | None:
        """Take the next trial.

        Args:
            view: the study as it was looked at just now.
            claimable: those of `view.claimable` that may be taken over by this process.

        Returns:
            The trial; or why there is none now or ever again; None: what could not be trained was recorded, or another
            process was first, so that the study is to be looked at again.
        """
        action = self._scheduler.next_action(view.trials, claimable, view.standing.limits.trials)
        if isinstance(action, Wait | Done):
            return action
        try:
            return self._carry_out(action)
        except (NumberTakenError, BudgetSpentError, NotClaimableError, LeaseLostError) as error:
            _log.debug("another process was first: %s", error)
            return None

    def claim(self, trial_id: int) -> Asked | None:
        """Take over a trial that rests or whose owner is gone; None: it was lost too often, and has ended FAILED.

        Raises:
            NotClaimableError: somebody works on it, or it has ended.
            TrialNotFoundError: the study has no such trial.
        """
        lease = self._study.claim(trial_id, owner=self._owner, ttl_s=self._lease_s)
        trial = self._study.trials()[lease.number]
        if trial.losses > self._max_retries:
            self._fail(lease, "lost", _lost_too_often(trial, self._max_retries))
            return None
        return Asked(lease=lease, configuration=Configuration(trial.configuration))

    def _carry_out(self, action: Start | StartQueued | RejectQueued | Refuse | Resume) -> Asked | None:
        match action:
            case Start():
                return self._create(action)
            case StartQueued():
                lease = self._start_queued(action.trial, action.configuration)
                return Asked(lease=lease, configuration=action.configuration)
            case Resume():
                return self.claim(action.trial.id)
            case RejectQueued():
                self._reject(action)
            case Refuse():
                self._refuse(action)
        return None

    def _create(self, action: Start) -> Asked:
        lease = self._study.create_trial(
            number=action.number,
            configuration=action.configuration,
            distributions=self._distributions,
            owner=self._owner,
            ttl_s=self._lease_s,
        )
        return Asked(lease=lease, configuration=action.configuration)

    def _start_queued(self, trial: Trial, configuration: Configuration) -> Lease:
        return self._study.start_queued(
            trial.id, configuration, self._distributions, owner=self._owner, ttl_s=self._lease_s
        )

    def _reject(self, action: RejectQueued) -> None:
        """End a queued trial that cannot be trained; it was asked for, so it takes its place in the budget."""
        fitting = self._scheduler.space.fitting_part(action.trial.configuration)
        self._fail(self._start_queued(action.trial, fitting), "user_error", action.reason)

    def _refuse(self, action: Refuse) -> None:
        self._study.add_infeasible(
            number=action.number,
            configuration=action.configuration,
            distributions=self._distributions,
            cause=action.reason,
        )
        _log.info("trial=%d infeasible: %s", action.number, action.reason)

    def _fail(self, lease: Lease, cause: str, message: str) -> None:
        self._study.tell(lease, TrialState.FAILED, cause=cause, attributes={"error": message})
        _log.warning("trial=%d failed cause=%s: %s", lease.number, cause, message)


def _lost_too_often(trial: Trial, max_retries: int) -> str:
    return f"its process or machine was lost {trial.losses} times (--max-retries {max_retries})"
