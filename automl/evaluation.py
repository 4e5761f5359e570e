"""The winner's score on the test split, which no trial was chosen by."""

import logging
from collections.abc import Mapping

from automl.artifacts import Artifacts
from automl.executors.base import Executor, Failed, Finished
from automl.interrupt import Interrupt
from automl.reports import numbers_in, plain
from automl.spec import SearchSpec
from studies.checkpoints import CheckpointLedger
from studies.study import Study
from studies.trial import Trial
from trainers.config import EvaluateTask
from trainers.settings import full_configuration

__all__ = ["measure_on_test_split", "test_score"]

ATTRIBUTE = "test"
"""The study's attribute: `{"trial": number, "metrics": {name: value}}`."""
POLL_S = 0.5

_log = logging.getLogger(__name__)


def test_score(study: Study, best: Trial) -> Mapping[str, float] | None:
    """The metrics of `best` on the test split; None when they were not measured, or for another trial."""
    stored = study.attributes.get(ATTRIBUTE)
    if not stored or stored["trial"] != best.number:
        return None
    return {name: float(value) for name, value in stored["metrics"].items()}


def measure_on_test_split(
    spec: SearchSpec,
    study: Study,
    artifacts: Artifacts,
    executor: Executor,
    best: Trial,
    interrupt: Interrupt,
) -> None:
    """Evaluate the best trial's checkpoint on the test split and store the metrics in the study."""
    if test_score(study, best) is not None:
        return
    record = CheckpointLedger(study, artifacts.root).best(best)
    if record is None:
        _log.warning("trial=%d has no checkpoint left; its test score is not measured", best.number)
        return
    task = {
        "space": spec.space,
        "configuration": full_configuration(spec.set, best.configuration, spec.whole_space, spec.make_trainer()),
        "data": spec.data,
        "precision": best.attributes.get("precision", spec.precision),  # the one really used
        "artifacts_root": artifacts.root,
        "checkpoint": record.path,
    }
    job = executor.submit(EvaluateTask.model_validate(task))
    while interrupt.signal is None:
        for event in executor.events(POLL_S):
            if isinstance(event, Finished):
                assert isinstance(event.outcome, Mapping)
                metrics = plain(numbers_in(event.outcome))
                study.set_attribute(ATTRIBUTE, {"trial": best.number, "metrics": metrics})
                return
            if isinstance(event, Failed):
                _log.warning(
                    "the test score of trial=%d is not measured: %s; `automl resume %s` tries it again",
                    best.number, event.failure, study.name,
                )  # fmt: skip
                return
    executor.cancel(job)
