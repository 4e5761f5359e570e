"""What every trainer must do; a subclass brings a trainer, its data and a task of three or more epochs."""

import hashlib
import json
import math
import pickle
from pathlib import Path
from typing import Any

import pytest

from trainers.config import EvaluateTask, TrainConfig, TrainTask
from trainers.data.spec import DataSpec
from trainers.distributed import Ranks
from trainers.errors import BadDataError
from trainers.monitoring import CLOCK_METRICS
from trainers.reporting import Decision, Report, TrialResult
from trainers.trainer import Trainer

__all__ = ["TrainerContract"]


class TrainerContract:
    @pytest.fixture
    def trainer(self) -> Trainer:
        raise NotImplementedError

    @pytest.fixture
    def data(self) -> Any:
        """What the trainer's `load` returns, small."""
        raise NotImplementedError

    @pytest.fixture
    def task(self) -> TrainTask:
        raise NotImplementedError

    @pytest.fixture
    def missing_data(self) -> DataSpec:
        raise NotImplementedError

    def test_hyperparameters_are_fields_of_the_training(self, trainer: Trainer) -> None:
        assert trainer.hyperparameters
        assert set(TrainConfig.model_fields) >= trainer.hyperparameters

    def test_settings_of_a_search_are_no_hyperparameters(self, trainer: Trainer) -> None:
        assert not {"epochs", "metric", "direction", "seed"} & trainer.hyperparameters

    def test_metrics_have_a_direction(self, trainer: Trainer) -> None:
        assert trainer.metrics
        assert set(trainer.metrics.values()) <= {"maximize", "minimize"}

    def test_usual_objective_is_measured_first_in_its_direction(self, trainer: Trainer, task: TrainTask) -> None:
        measured = trainer.measured(task.data)
        assert next(iter(measured)) in trainer.metrics
        assert measured.items() <= trainer.metrics.items()

    def test_data_that_are_not_there_are_refused_unread(self, trainer: Trainer, missing_data: DataSpec) -> None:
        with pytest.raises(BadDataError, match="allowed"):
            trainer.check(missing_data)

    def test_data_can_be_pickled(self, data: Any) -> None:
        pickle.loads(pickle.dumps(data))

    def test_fit_reports_every_epoch_once_with_every_metric(self, trainer: Trainer, data: Any, task: TrainTask) -> None:
        result, reports = _fit(trainer, data, task)
        assert (result.outcome, result.epoch) == ("completed", task.training.epochs)
        assert [report.epoch for report in reports] == list(range(1, task.training.epochs + 1))
        for report in reports:
            assert set(trainer.measured(task.data)) <= set(report.metrics)
            assert all(math.isfinite(value) for value in report.metrics.values())

    def test_fit_writes_the_checkpoints_that_it_reports(self, trainer: Trainer, data: Any, task: TrainTask) -> None:
        _, reports = _fit(trainer, data, task)
        for report in reports:
            assert report.checkpoint is not None
            assert report.checkpoint.epoch == report.epoch
            assert report.checkpoint.path.startswith(f"{task.checkpoint_dir}/")
            content = (Path(task.artifacts_root) / report.checkpoint.path).read_bytes()
            assert report.checkpoint.size_bytes == len(content)
            assert report.checkpoint.digest == hashlib.sha256(content).hexdigest()

    def test_facts_are_plain_json(self, trainer: Trainer, data: Any, task: TrainTask) -> None:
        result, _ = _fit(trainer, data, task)
        assert json.loads(json.dumps(dict(result.facts), allow_nan=False)) == dict(result.facts)
        assert result.facts["world_size"] == 1

    @pytest.mark.parametrize(
        ("decision", "outcome"), [(Decision.STOP, "stopped"), (Decision.PAUSE, "paused")], ids=["stop", "pause"]
    )
    def test_decision_ends_the_trial_at_its_epoch(
        self, trainer: Trainer, data: Any, task: TrainTask, decision: Decision, outcome: str
    ) -> None:
        result, reports = _fit(trainer, data, task, {2: decision})
        assert (result.outcome, result.epoch, len(reports)) == (outcome, 2, 2)

    @pytest.mark.parametrize(
        ("decision", "outcome"), [(Decision.STOP, "stopped"), (Decision.PAUSE, "completed")], ids=["stop", "pause"]
    )
    def test_decision_after_the_last_epoch(
        self, trainer: Trainer, data: Any, task: TrainTask, decision: Decision, outcome: str
    ) -> None:
        result, _ = _fit(trainer, data, task, {task.training.epochs: decision})
        assert (result.outcome, result.epoch) == (outcome, task.training.epochs)

    def test_resumed_trial_reports_what_the_uninterrupted_one_does(
        self, trainer: Trainer, data: Any, task: TrainTask
    ) -> None:
        _, whole = _fit(trainer, data, task)
        _, first = _fit(trainer, data, task, {1: Decision.PAUSE})
        assert first[0].checkpoint is not None
        resumed = task.model_copy(update={"resume_from": first[0].checkpoint.path})
        result, second = _fit(trainer, data, resumed)
        assert (result.outcome, result.epoch) == ("completed", task.training.epochs)
        assert [_timeless(report) for report in first + second] == [_timeless(report) for report in whole]

    def test_evaluation_repeats_the_reported_values(self, trainer: Trainer, data: Any, task: TrainTask) -> None:
        _, reports = _fit(trainer, data, task)
        for report in reports:
            assert report.checkpoint is not None
            evaluation = EvaluateTask(
                space=task.space,
                configuration=task.configuration,
                precision=task.training.precision,
                artifacts_root=task.artifacts_root,
                checkpoint=report.checkpoint.path,
                split="validation",
            )
            measured = trainer.evaluate(evaluation, data, Ranks.alone("cpu"))
            assert set(measured) == set(trainer.measured(task.data))
            assert measured == {name: report.metrics[name] for name in measured}


def _fit(
    trainer: Trainer, data: Any, task: TrainTask, decisions: dict[int, Decision] | None = None
) -> tuple[TrialResult, list[Report]]:
    reports: list[Report] = []

    def report_to(report: Report) -> Decision:
        reports.append(report)
        return (decisions or {}).get(report.epoch, Decision.CONTINUE)

    return trainer.fit(task, data, Ranks.alone("cpu"), report_to), reports


def _timeless(report: Report) -> tuple[int, dict[str, float]]:
    return report.epoch, {name: value for name, value in report.metrics.items() if name not in CLOCK_METRICS}
