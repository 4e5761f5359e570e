"""The study's trials that a Tune program trains, by the names that Tune gives them; knows nothing else of Ray.

A trial is held while this process has its lease. One that Tune may go on with, and that is not held meanwhile, is
"left": paused by the pruner, to be started again by Tune after an error, or restored from Tune's own checkpoint.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from automl.asking import Asked, Asker
from automl.outbox import KeptReport
from automl.reports import facts_about, numbers_in, problem_with_report
from automl.scheduler import Done, Scheduler, Wait
from automl.stopping import StoppingRule, failures_in_a_row
from automl.worker import Failure
from search_spaces.configuration import Configuration
from studies.checkpoints import best_epoch
from studies.errors import LeaseLostError, NotClaimableError, StorageError, TrialNotFoundError
from studies.leases import LeaseKeeper
from studies.study import Study, View
from studies.trial import Lease, Trial, TrialState
from trainers.reporting import Decision, Report

__all__ = ["TuneTrials"]

FAREWELL_S = 1.0
"""How long a database that is away is asked to take a trial back when the program ends."""

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class TuneTrials:
    """Asks and tells for one Tune program; used by one thread.

    Attributes:
        study: where the trials are.
        scheduler: proposes and judges.
        asker: takes the next trial.
        keeper: keeps the leases.
        metric: name of the objective in the reports.
        max_retries: how often a trial is started again after its process was lost.
        max_failures: failed trials in a row that end the program's search.
        began_at: when the program began, by the database's clock.
    """

    study: Study
    scheduler: Scheduler
    asker: Asker
    keeper: LeaseKeeper
    metric: str
    max_retries: int
    max_failures: int
    began_at: float
    _held: dict[str, Lease] = field(default_factory=dict, init=False)
    _left: dict[str, int] = field(default_factory=dict, init=False)
    _begun: set[str] = field(default_factory=set, init=False)
    _failures: dict[str, Failure] = field(default_factory=dict, init=False)
    _failed_because: str | None = field(default=None, init=False)

    # Asking

    def ask(self, tune_id: str) -> Configuration | Wait | Done:
        """The configuration of the next trial, which is held from now on under this name."""
        while True:
            view = self.study.look()
            if (reason := self._reason_to_stop(view)) is not None:
                return Done(reason=reason)
            answer = self._asked(view)
            match answer:
                case Asked():
                    self._hold(tune_id, answer.lease)
                    return answer.configuration
                case Wait() if not self._held and not self._left:
                    # Tune cannot be interrupted while it waits for a proposal with nothing to train.
                    return Done(reason="every trial that is left is held by other processes")
                case Wait() | Done():
                    return answer

    def go_on(self, tune_id: str) -> bool:
        """Take a left trial back; False: it has ended, or another process has it, so that Tune must not train it."""
        trial_id = self._left.pop(tune_id, None)
        if trial_id is None:
            return False
        try:
            answer = self.asker.claim(trial_id)
        except (NotClaimableError, TrialNotFoundError) as error:
            _log.warning("Ray Tune's trial %s is not trained: %s", tune_id, error)
            return False
        if answer is None:
            return False
        self._hold(tune_id, answer.lease)
        return True

    def begin(self, tune_id: str) -> bool:
        """Tune is to train a known trial; False: only after `go_on`, since it trained the trial before."""
        if tune_id in self._held and tune_id in self._begun:
            failure = self._failures.pop(tune_id, None)
            self.leave(tune_id, is_lost=failure is not None and failure.cause == "lost")
        self._begun.add(tune_id)
        return tune_id in self._held

    def is_known(self, tune_id: str) -> bool:
        """Whether the name is that of an unfinished trial of the study."""
        return tune_id in self._held or tune_id in self._left

    def holds(self, tune_id: str) -> bool:
        """Whether this process has the trial's lease."""
        return tune_id in self._held

    def lost(self) -> tuple[str, ...]:
        """The trials that another process has taken over; they are not held any more."""
        gone = self.keeper.lost()
        names = tuple(name for name, lease in self._held.items() if lease in gone) if gone else ()
        for name in names:
            self._lose(name, "lease lost")
        return names

    # Telling

    def report(self, tune_id: str, report: Report) -> Decision:
        """Store a report and judge the trial; after STOP it has ended or was given back, after PAUSE it is left."""
        problem = problem_with_report(report, self.metric)
        if problem is not None:
            self.fail(tune_id, problem)
            return Decision.STOP
        try:
            return self._judge(tune_id, self._store(tune_id, report))
        except LeaseLostError as error:
            self._lose(tune_id, str(error))
            return Decision.STOP

    def complete(self, tune_id: str, last: Report | None) -> None:
        """End a trial whose training is over as COMPLETE with its best epoch.

        Args:
            tune_id: Tune's name of a held trial.
            last: the last report, where it is not known whether it was stored; None: there is none.
        """
        try:
            if last is not None and last.epoch not in self._trial(tune_id).reports:
                problem = problem_with_report(last, self.metric)
                if problem is not None:
                    self.fail(tune_id, problem)
                    return
                self._store(tune_id, last)
            self._complete(tune_id)
        except LeaseLostError as error:
            self._lose(tune_id, str(error))

    def fail(self, tune_id: str, failure: Failure) -> None:
        """End a trial as FAILED; one that is not to blame rests, and anyone may go on with it."""
        try:
            if failure.cause == "disk_full":
                self._failed_because = f"the disk of {failure.host or 'a worker'} is full: {failure.message}"
                self._pause(tune_id)
            elif failure.cause == "lost" and self._trial(tune_id).losses < self.max_retries:
                self._pause(tune_id, is_lost=True)
            else:
                _log.warning("trial=%d %s", self._held[tune_id].number, failure)
                self._end(tune_id, TrialState.FAILED, cause=failure.cause, attributes=facts_about(failure))
                self._count_failures()
        except LeaseLostError as error:
            self._lose(tune_id, str(error))

    def note_failure(self, tune_id: str, failure: Failure) -> None:
        """Keep why Tune's training ended badly until it is known whether Tune tries again."""
        self._failures[tune_id] = failure

    def fail_as_noted(self, tune_id: str) -> None:
        """End a trial whose failure is final."""
        self.fail(tune_id, self._failures.pop(tune_id))

    def leave(self, tune_id: str, *, is_lost: bool = False) -> None:
        """Let a trial rest that Tune is going to start again; its later epochs are forgotten when it reports anew."""
        trial_id = self._held[tune_id].trial_id
        try:
            self._pause(tune_id, is_lost=is_lost)
            self._left[tune_id] = trial_id
        except LeaseLostError as error:
            self._lose(tune_id, str(error))

    def give_back(self, tune_id: str) -> None:
        """Let a trial rest that Tune has cut short; anyone may go on with it."""
        self._left.pop(tune_id, None)
        if tune_id in self._held:
            try:
                self._pause(tune_id, patience_s=FAREWELL_S)
            except LeaseLostError as error:
                self._lose(tune_id, str(error))

    def give_all_back(self) -> None:
        """Hold nothing any more: what Tune has not ended was cut short."""
        for tune_id in list(self._held):
            try:
                self.give_back(tune_id)
            except StorageError as error:
                # What is on its way already is to be told; the lease ends by itself.
                _log.warning("trial=%d cannot be given back: %s", self._held[tune_id].number, error)

    # Tune's own checkpoint of the experiment

    def names(self) -> Mapping[str, int]:
        """Tune's names of the trials that have not ended, with their keys in the study."""
        return {**{name: lease.trial_id for name, lease in self._held.items()}, **self._left}

    def restore(self, names: Mapping[str, int]) -> None:
        """Leave the trials that had these names in an earlier run of the program."""
        self._left.update({name: key for name, key in names.items() if name not in self._held})

    def _asked(self, view: View) -> Asked | Wait | Done | None:
        others = {*self.names().values()}
        claimable = [trial for trial in view.claimable if trial.id not in others]
        if claimable:
            # Their training goes on from a checkpoint that only `automl` can read.
            theirs = self.study.trials_with_checkpoints()
            claimable = [trial for trial in claimable if trial.id not in theirs]
        return self.asker.ask(view, claimable)

    def _reason_to_stop(self, view: View) -> str | None:
        if self._failed_because is not None:
            return self._failed_because
        rule = StoppingRule(direction=self.study.direction, began_at=self.began_at)
        stop = rule.stop(view.trials, view.standing)
        return None if stop is None else stop.reason

    def _judge(self, tune_id: str, view: View) -> Decision:
        trial = view.trials[self._held[tune_id].number]
        if trial.last_epoch >= self.scheduler.pruner.epochs:
            self._complete(tune_id)
            return Decision.STOP
        decision = self.scheduler.decide(trial, view.trials)
        if decision is Decision.STOP:
            self._end(tune_id, TrialState.PRUNED)
        elif decision is Decision.PAUSE:
            self.leave(tune_id)
        elif self._reason_to_stop(view) is not None:
            self._pause(tune_id)
            return Decision.STOP
        return decision

    def _store(self, tune_id: str, report: Report) -> View:
        kept = KeptReport(
            epoch=int(report.epoch),
            value=float(report.metrics[self.metric]),
            metrics=numbers_in(report.metrics),
            checkpoint=None,
        )
        return kept.store(self.study, self._held[tune_id])

    def _complete(self, tune_id: str) -> None:
        trial = self._trial(tune_id)
        epoch = best_epoch(trial, self.study.direction)
        if epoch is None:
            message = "the training ended without a report"
            self.fail(tune_id, Failure(cause="user_error", error="ReportError", message=message))
            return
        self._end(tune_id, TrialState.COMPLETE, value=trial.reports[epoch], attributes={"best_epoch": epoch})

    def _end(
        self,
        tune_id: str,
        state: TrialState,
        *,
        value: float | None = None,
        cause: str | None = None,
        attributes: Mapping[str, object] | None = None,
    ) -> None:
        lease = self._held[tune_id]
        self.study.tell(lease, state, value=value, cause=cause, attributes=attributes)
        self._forget(tune_id)
        _log.info("trial=%d %s value=%s", lease.number, state.value, value)

    def _pause(self, tune_id: str, *, is_lost: bool = False, patience_s: float | None = None) -> None:
        self.study.pause(self._held[tune_id], is_lost=is_lost, patience_s=patience_s)
        self._forget(tune_id)

    def _count_failures(self) -> None:
        in_a_row = failures_in_a_row(self.study.trials(), self.began_at)
        if in_a_row >= self.max_failures:
            self._failed_because = f"the last {in_a_row} trials failed (max_failures={self.max_failures})"

    def _trial(self, tune_id: str) -> Trial:
        return self.study.trials()[self._held[tune_id].number]

    def _hold(self, tune_id: str, lease: Lease) -> None:
        self._held[tune_id] = lease
        self.keeper.add(lease)

    def _forget(self, tune_id: str) -> None:
        self.keeper.discard(self._held.pop(tune_id))

    def _lose(self, tune_id: str, why: str) -> None:
        _log.warning("trial=%d %s; it goes on elsewhere", self._held[tune_id].number, why)
        self._forget(tune_id)
