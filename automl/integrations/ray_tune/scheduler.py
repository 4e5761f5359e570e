"""Tune's scheduler on a study: reports are stored at their true epochs, and the study's pruner decides.

Stopping, pausing and starting are Tune's; who is told what is this:

| in Tune | in the study |
|---|---|
| the function returns, `done`, a criterion of `stop` is reached, or the last epoch | COMPLETE with its best epoch |
| STOP by the pruner | PRUNED at the epoch it has reported |
| an error, after Tune's own retries | FAILED with its cause; PAUSED if only its process was lost or killed for memory |
| an error that Tune retries, PAUSE by the pruner | PAUSED until Tune starts it again, as another attempt |
| cut short: Ctrl-C, `time_budget_s`, `Stopper.stop_all` | PAUSED, anyone may go on |
"""

import logging
from typing import TYPE_CHECKING, Any

import numpy as np
from ray.tune.experiment import Trial
from ray.tune.result import AUTO_RESULT_KEYS, DONE, SHOULD_CHECKPOINT
from ray.tune.schedulers import FIFOScheduler, TrialScheduler

from automl.errors import InvalidSpecError
from automl.integrations.ray_tune.failures import failure_of
from automl.integrations.ray_tune.study import TuneStudy
from trainers.reporting import Decision, Report

if TYPE_CHECKING:
    from ray.tune.execution.tune_controller import TuneController

__all__ = ["StudyScheduler"]

_TUNES_OWN = frozenset({*AUTO_RESULT_KEYS, DONE, SHOULD_CHECKPOINT})
_DECISIONS = {
    Decision.CONTINUE: TrialScheduler.CONTINUE,
    Decision.STOP: TrialScheduler.STOP,
    Decision.PAUSE: TrialScheduler.PAUSE,
}

_log = logging.getLogger(__name__)


class StudyScheduler(FIFOScheduler):
    """Stores what trials report and stops them early; goes together with a `StudySearcher` of the same study.

    Args:
        study: the joined study.
    """

    _supports_buffered_results = False  # a trial trains no epoch beyond the one it is stopped at

    def __init__(self, study: TuneStudy) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Ray's own
        self._study = study
        self._to_go_on: list[Trial] = []
        self._has_seen_metric = False

    def set_search_properties(self, metric: str | None, mode: str | None, **spec: Any) -> bool:
        """Tune's words before a run begins.

        Raises:
            InvalidSpecError: the objective is not the study's, or the study was closed.
        """
        self._study.begin_run(metric, mode)
        return True

    def on_trial_add(self, tune_controller: "TuneController", trial: Trial) -> None:
        """A trial is to be trained: a new one, one of an earlier run of the program, or one after an error.

        Raises:
            InvalidSpecError: another searcher has proposed it.
        """
        if trial.status in (Trial.TERMINATED, Trial.ERROR):
            return
        if not self._study.held.knows(trial.trial_id):
            raise InvalidSpecError(
                [
                    f"trial {trial.trial_id} is not of study '{self._study.name}': it comes from another searcher, "
                    "or is a restart of one that has ended, for which `automl retry` makes a new trial"
                ],
                "TuneConfig: give search_alg=StudySearcher(study) and scheduler=StudyScheduler(study)",
            )
        if not self._study.telling.begin(trial.trial_id):
            self._to_go_on.append(trial)

    def on_trial_error(self, tune_controller: "TuneController", trial: Trial) -> None:
        """A trial has failed; whether Tune tries it again is not known yet."""
        self._study.telling.note_failure(trial.trial_id, failure_of(trial))

    def on_trial_result(self, tune_controller: "TuneController", trial: Trial, result: dict[str, Any]) -> str:
        """Store a report and decide.

        Raises:
            InvalidSpecError: the first report of the program has no such metric.
        """
        if trial.trial_id not in self._study.held:
            return str(TrialScheduler.STOP)
        report = self._report(result)
        self._check_metric(report)
        return str(_DECISIONS[self._study.telling.report(trial.trial_id, report)])

    def on_trial_complete(self, tune_controller: "TuneController", trial: Trial, result: dict[str, Any]) -> None:
        """A running trial ends; Tune marks with `done` the one that has reached its end or a criterion of `stop`."""
        if trial.trial_id not in self._study.held:
            return
        if result.get(DONE):
            has_reported = self._study.time_attr in result
            self._study.telling.complete(trial.trial_id, self._report(result) if has_reported else None)
        else:
            self._study.telling.give_back(trial.trial_id)

    def on_trial_remove(self, tune_controller: "TuneController", trial: Trial) -> None:
        """A trial that is not running is not wanted any more."""
        self._study.telling.give_back(trial.trial_id)

    def choose_trial_to_run(self, tune_controller: "TuneController") -> Trial | None:
        """First new trials, then paused ones; only what this process holds, or can take back."""
        held, go_on = self._study.held, self._study.asking.go_on
        if lost := held.lose_taken():
            running: list[Trial] = tune_controller.get_trials()  # type: ignore[no-untyped-call]  # Ray's own
            self._stop(tune_controller, [trial for trial in running if trial.trial_id in lost])
        waiting, self._to_go_on = self._to_go_on, []
        self._stop(tune_controller, [trial for trial in waiting if not go_on(trial.trial_id)])
        chosen = super().choose_trial_to_run(tune_controller)
        if chosen is None or chosen.trial_id in held or go_on(chosen.trial_id):
            return chosen
        self._stop(tune_controller, [chosen])
        return None

    def debug_string(self) -> str:
        """One line for Tune's status."""
        return f"Study {self._study.name}: sampler {self._study.settings.sampler}, pruner {self._study.settings.pruner}"

    def _stop(self, tune_controller: "TuneController", trials: list[Trial]) -> None:
        for trial in trials:
            tune_controller.stop_trial(trial)  # type: ignore[no-untyped-call]  # Ray's own

    def _report(self, result: dict[str, Any]) -> Report:
        """What a person has measured, without what Tune adds."""
        metrics = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in result.items()
            if name not in _TUNES_OWN and not name.startswith("config/") and name != self._study.time_attr
        }
        return Report(epoch=result.get(self._study.time_attr), metrics=metrics)  # type: ignore[arg-type]  # checked later

    def _check_metric(self, report: Report) -> None:
        metric, measured = self._study.settings.metric, report.metrics
        if not self._has_seen_metric and metric not in measured:
            raise InvalidSpecError(
                [f"metric: a report has no {metric!r}, but {', '.join(sorted(measured)) or 'nothing'}"],
                f"the reports for study '{self._study.name}'",
            )
        self._has_seen_metric = True
