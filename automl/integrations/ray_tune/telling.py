"""What becomes of the trials that a Tune program trains; knows nothing of Ray but the names that Tune gives them."""

import logging
from collections.abc import Mapping

from automl.asking import FAREWELL_S
from automl.integrations.ray_tune.held import HeldTrials
from automl.integrations.ray_tune.program_end import ProgramEnd
from automl.reports import facts_about, kept_report, problem_with_report
from automl.retries import facts_to_keep, is_tried_again
from automl.scheduler import Scheduler
from automl.worker import Failure
from studies.checkpoints import best_epoch
from studies.errors import LeaseLostError, StorageError
from studies.study import Study, View
from studies.trial import Trial, TrialState
from trainers.reporting import Decision, Report

__all__ = ["TuneTelling"]

_log = logging.getLogger(__name__)


class TuneTelling:
    """Tells the study for one Tune program; used by one thread.

    Args:
        study: where the trials are.
        scheduler: judges.
        held: those that are this program's.
        end: is told what speaks for an end.
        metric: name of the objective in the reports.
        max_retries: how often a trial is started again after its process was lost.
    """

    def __init__(
        self, study: Study, scheduler: Scheduler, held: HeldTrials, end: ProgramEnd, *, metric: str, max_retries: int
    ) -> None:
        self._study = study
        self._scheduler = scheduler
        self._held = held
        self._end = end
        self._metric = metric
        self._max_retries = max_retries
        self._begun: set[str] = set()
        self._failures: dict[str, Failure] = {}

    def report(self, tune_id: str, report: Report) -> Decision:
        """Store a report and judge the trial; after STOP it has ended or was given back, after PAUSE it is left."""
        problem = problem_with_report(report, self._metric)
        if problem is not None:
            self.fail(tune_id, problem)
            return Decision.STOP
        try:
            return self._judge(tune_id, self._store(tune_id, report))
        except LeaseLostError as error:
            self._held.lose(tune_id, str(error))
            return Decision.STOP

    def complete(self, tune_id: str, last: Report | None) -> None:
        """End a trial whose training is over as COMPLETE with its best epoch.

        Args:
            tune_id: Tune's name of a held trial.
            last: the last report, where it is not known whether it was stored; None: there is none.
        """
        try:
            if last is not None and last.epoch not in self._trial(tune_id).reports:
                problem = problem_with_report(last, self._metric)
                if problem is not None:
                    self.fail(tune_id, problem)
                    return
                self._store(tune_id, last)
            self._complete(tune_id)
        except LeaseLostError as error:
            self._held.lose(tune_id, str(error))

    def fail(self, tune_id: str, failure: Failure) -> None:
        """End a trial as FAILED; one that is not to blame rests, and anyone may go on with it."""
        try:
            if failure.cause == "disk_full":
                self._end.note_full_disk(failure)
                self._pause(tune_id, failure)
            elif is_tried_again(self._trial(tune_id), failure, self._max_retries):
                self._pause(tune_id, failure)
            else:
                _log.warning("trial=%d %s", self._held[tune_id].number, failure)
                self._tell(tune_id, TrialState.FAILED, cause=failure.cause, attributes=facts_about(failure))
                self._end.note_failed_trial()
        except LeaseLostError as error:
            self._held.lose(tune_id, str(error))

    def note_failure(self, tune_id: str, failure: Failure) -> None:
        """Keep why Tune's training ended badly until it is known whether Tune tries again."""
        self._failures[tune_id] = failure

    def fail_as_noted(self, tune_id: str) -> None:
        """End a trial whose failure is final."""
        self.fail(tune_id, self._failures.pop(tune_id))

    def begin(self, tune_id: str) -> bool:
        """Tune is to train a known trial; False: only after `TuneAsking.go_on`, since it trained the trial before."""
        if tune_id in self._held and tune_id in self._begun:
            self.leave(tune_id, self._failures.pop(tune_id, None))
        self._begun.add(tune_id)
        return tune_id in self._held

    def leave(self, tune_id: str, failure: Failure | None = None) -> None:
        """Let a trial rest that Tune is going to start again; its later epochs are forgotten when it reports anew."""
        try:
            self._store_rest(tune_id, failure)
            self._held.leave(tune_id)
        except LeaseLostError as error:
            self._held.lose(tune_id, str(error))

    def give_back(self, tune_id: str) -> None:
        """Let a trial rest that Tune has cut short; anyone may go on with it."""
        self._held.pop_left(tune_id)
        if tune_id in self._held:
            try:
                self._pause(tune_id, patience_s=FAREWELL_S)
            except LeaseLostError as error:
                self._held.lose(tune_id, str(error))

    def give_all_back(self) -> None:
        """Hold nothing any more: what Tune has not ended was cut short."""
        for tune_id in self._held:
            try:
                self.give_back(tune_id)
            except StorageError as error:
                # What is on its way already is to be told; the lease ends by itself.
                _log.warning("trial=%d cannot be given back: %s", self._held[tune_id].number, error)

    def _judge(self, tune_id: str, view: View) -> Decision:
        trial = view.trials[self._held[tune_id].number]
        if trial.last_epoch >= self._scheduler.pruner.epochs:
            self._complete(tune_id)
            return Decision.STOP
        decision = self._scheduler.decide(trial, view.trials)
        if decision is Decision.STOP:
            self._tell(tune_id, TrialState.PRUNED)
        elif decision is Decision.PAUSE:
            self.leave(tune_id)
        elif self._end.reason(view) is not None:
            self._pause(tune_id)
            return Decision.STOP
        return decision

    def _store(self, tune_id: str, report: Report) -> View:
        lease = self._held[tune_id]
        return kept_report(report, self._metric, lease).store(self._study, lease)

    def _complete(self, tune_id: str) -> None:
        trial = self._trial(tune_id)
        epoch = best_epoch(trial, self._study.direction)
        if epoch is None:
            message = "the training ended without a report"
            self.fail(tune_id, Failure(cause="user_error", error="ReportError", message=message))
            return
        self._tell(tune_id, TrialState.COMPLETE, value=trial.reports[epoch], attributes={"best_epoch": epoch})

    def _tell(
        self,
        tune_id: str,
        state: TrialState,
        *,
        value: float | None = None,
        cause: str | None = None,
        attributes: Mapping[str, object] | None = None,
    ) -> None:
        lease = self._held[tune_id]
        self._study.tell(lease, state, value=value, cause=cause, attributes=attributes)
        self._held.forget(tune_id)
        _log.info("trial=%d %s value=%s", lease.number, state.value, value)

    def _pause(self, tune_id: str, failure: Failure | None = None, patience_s: float | None = None) -> None:
        self._store_rest(tune_id, failure, patience_s)
        self._held.forget(tune_id)

    def _store_rest(self, tune_id: str, failure: Failure | None, patience_s: float | None = None) -> None:
        lease = self._held[tune_id]
        if failure is not None and (facts := facts_to_keep(self._trial(tune_id), failure)):
            self._study.note(lease, facts)
        is_lost = failure is not None and failure.cause == "lost"
        self._study.pause(lease, is_lost=is_lost, patience_s=patience_s)

    def _trial(self, tune_id: str) -> Trial:
        return self._study.trials()[self._held[tune_id].number]
