"""The next trial to train: what the scheduler wants, made true in the study. How it is trained is not known here.

"Ask" is the word of ask-and-tell interfaces, as in Optuna. Asking writes: it creates a trial, starts a queued one,
takes over an interrupted one, or records why one cannot be trained.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from automl.events import Event, TrialEnded, TrialRefused
from automl.inheritance import INHERITED_FROM, parent_number
from automl.retries import reason_to_give_up
from automl.scheduler import Prune, Refuse, RejectQueued, Resume, Start, StartQueued, Step
from search_spaces.configuration import Configuration
from search_spaces.space import SearchSpace
from studies.errors import BudgetSpentError, LeaseLostError, NotClaimableError, NumberTakenError, StorageError
from studies.leases import LeaseKeeper
from studies.study import Study
from studies.trial import Lease, Trial, TrialState
from trainers.errors import FailureCause

__all__ = ["FAREWELL_S", "TAKEN_ELSEWHERE", "Asked", "Asker"]

FAREWELL_S = 1.0
"""How long a database that stays away is asked to take back a trial that nobody trains."""
TAKEN_ELSEWHERE = (NumberTakenError, BudgetSpentError, NotClaimableError, LeaseLostError)
"""Another process was first: look at the study again."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A trial that is this process's to train.

    Attributes:
        lease: the right to write to it; it is kept alive.
        configuration: what to train.
        earlier: the trial as others have left it; None: it begins.
        parent: number of the trial whose weights it begins with; None: they are drawn.
    """

    lease: Lease
    configuration: Configuration
    earlier: Trial | None = None
    parent: int | None = None


class Asker:
    """Asks one study for trials, on behalf of one process.

    Args:
        study: where trials are created and claimed.
        space: what is searched.
        keeper: keeps the leases.
        owner: this process; see `process_identity`.
        lease_s: how long a lease lasts without a sign of life, in seconds.
        max_retries: how often a trial is started again after its process or machine was lost.
        observe: is told of trials that are not trained: `TrialRefused` and `TrialEnded`.
    """

    def __init__(
        self,
        study: Study,
        space: SearchSpace,
        keeper: LeaseKeeper,
        *,
        owner: str,
        lease_s: float,
        max_retries: int,
        observe: Callable[[Event], None],
    ) -> None:
        self._study = study
        self._space = space
        self._keeper = keeper
        self._owner = owner
        self._lease_s = lease_s
        self._max_retries = max_retries
        self._observe = observe
        self._distributions = space.distributions()

    @contextmanager
    def take(self, action: Step) -> Iterator[Asked | None]:
        """Do what the scheduler wants, and bring its trial on its way within the `with` statement.

        An error in there gives the trial back, so that anyone may go on with it.

        Yields:
            The trial; None: what cannot be trained was recorded.

        Raises:
            NumberTakenError: another process was first; so say all of `TAKEN_ELSEWHERE`.
            BudgetSpentError: likewise.
            NotClaimableError: likewise.
            LeaseLostError: likewise.
        """
        match action:
            case Start():
                parent = self._parent_with_weights(action)
                with self._kept(self._create(action, parent)) as lease:
                    yield Asked(lease=lease, configuration=action.configuration, parent=parent)
            case StartQueued():
                with self._kept(self._start_queued(action.trial, action.configuration)) as lease:
                    yield Asked(lease=lease, configuration=action.configuration)
            case Resume():
                with self.claim(action.trial.id) as asked:
                    yield asked
            case RejectQueued():
                self._reject(action)
                yield None
            case Refuse():
                self._refuse(action)
                yield None
            case Prune():
                self._prune(action.trial)
                yield None

    @contextmanager
    def claim(self, trial_id: int) -> Iterator[Asked | None]:
        """Take over a trial that rests or whose owner is gone, as `take` does.

        Yields:
            The trial; None: it was lost or killed too often, and has ended FAILED.

        Raises:
            NotClaimableError: somebody works on it, or it has ended.
            TrialNotFoundError: the study has no such trial.
            LeaseLostError: another process has taken it over meanwhile.
        """
        with self._kept(self._study.claim(trial_id, owner=self._owner, ttl_s=self._lease_s)) as lease:
            # Others may have had the trial since it was looked at.
            trial = self._study.trials()[lease.number]
            reason = reason_to_give_up(trial, self._max_retries)
            if reason is None:
                yield Asked(
                    lease=lease,
                    configuration=Configuration(trial.configuration),
                    earlier=trial,
                    parent=parent_number(trial),
                )
                return
            self._end_untrained(lease, trial, *reason)
        yield None

    @contextmanager
    def _kept(self, lease: Lease) -> Iterator[Lease]:
        """Keep a new lease; give the trial back when it does not come to run."""
        self._keeper.add(lease)
        try:
            yield lease
        except BaseException:
            self._keeper.discard(lease)
            self._give_back(lease)
            raise

    def _give_back(self, lease: Lease) -> None:
        try:
            self._study.pause(lease, patience_s=FAREWELL_S)
        except (LeaseLostError, StorageError) as error:
            # What is on its way already is to be told; the lease ends by itself.
            _log.warning("trial=%d cannot be given back: %s", lease.number, error)

    def _parent_with_weights(self, action: Start) -> int | None:
        """The parent, unless its weights are gone, as those of trials from before anybody inherited."""
        if action.parent is None:
            return None
        parent = self._study.trials()[action.parent]
        return action.parent if parent.id in self._study.trials_with_checkpoints() else None

    def _create(self, action: Start, parent: int | None) -> Lease:
        return self._study.create_trial(
            number=action.number,
            configuration=action.configuration,
            distributions=self._distributions,
            owner=self._owner,
            ttl_s=self._lease_s,
            attributes=None if parent is None else {INHERITED_FROM: parent},
        )

    def _start_queued(self, trial: Trial, configuration: Configuration) -> Lease:
        return self._study.start_queued(
            trial.id, configuration, self._distributions, owner=self._owner, ttl_s=self._lease_s
        )

    def _reject(self, action: RejectQueued) -> None:
        """End a queued trial that cannot be trained; it was asked for, so it takes its place in the budget."""
        lease = self._start_queued(action.trial, self._space.fitting_part(action.trial.configuration))
        self._end_untrained(lease, action.trial, "user_error", action.reason)

    def _end_untrained(self, lease: Lease, trial: Trial, cause: FailureCause, message: str) -> None:
        self._study.tell(lease, TrialState.FAILED, cause=cause, attributes={"error": message})
        self._keeper.discard(lease)
        self._observe(TrialEnded.of(trial, TrialState.FAILED, cause=cause, message=message))

    def _prune(self, seen: Trial) -> None:
        """End a trial that rests, unless another process has trained it further since it was looked at."""
        with self._kept(self._study.claim(seen.id, owner=self._owner, ttl_s=self._lease_s)) as lease:
            trial = self._study.trials()[lease.number]
            if trial.last_epoch != seen.last_epoch:
                raise NotClaimableError(trial.number, f"it was trained on to epoch {trial.last_epoch}")
            self._study.tell(lease, TrialState.PRUNED)
            self._keeper.discard(lease)
        self._observe(TrialEnded.of(trial, TrialState.PRUNED))

    def _refuse(self, action: Refuse) -> None:
        self._study.add_infeasible(
            number=action.number,
            configuration=action.configuration,
            distributions=self._distributions,
            cause=action.reason,
        )
        self._observe(TrialRefused(number=action.number, reason=action.reason))
