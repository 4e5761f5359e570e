import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.contracts.trainer_contract import TrainerContract
from tests.trainers.training import Script, tiny_task
from trainers.config import EvaluateTask, TrainTask
from trainers.data.arrays import ImageData, ImageSplit
from trainers.data.spec import DataSpec
from trainers.distributed import Ranks
from trainers.errors import (
    BadDataError,
    DamagedCheckpointError,
    DeviceMemoryError,
    NonFiniteLossError,
    UserCodeError,
)
from trainers.reporting import Decision
from trainers.tasks.image_classification import ImageClassification
from trainers.trainer import Trainer

trainer = ImageClassification()
ALONE = Ranks.alone("cpu")


class TestImageClassification(TrainerContract):
    @pytest.fixture
    def trainer(self) -> Trainer:
        return ImageClassification()

    @pytest.fixture
    def data(self, few_digits: ImageData) -> ImageData:
        return few_digits

    @pytest.fixture
    def task(self, tmp_path: Path) -> TrainTask:
        return tiny_task(tmp_path, epochs=3)

    @pytest.fixture
    def missing_data(self) -> DataSpec:
        return DataSpec(source="digitz")


def test_planning_with_the_trainer_loads_no_torch() -> None:
    code = (
        "import sys; from trainers.tasks import load_trainer; from trainers.data.spec import DataSpec;"
        "t = load_trainer('image_classification'); t.check(DataSpec()); t.measured(DataSpec()); t.hyperparameters;"
        "loaded = {'torch', 'ray', 'optuna', 'sklearn'} & set(sys.modules); sys.exit(str(loaded) if loaded else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_training_learns_real_digits(digits: ImageData, tmp_path: Path) -> None:
    task = tiny_task(tmp_path, {"width": 16}, epochs=6, learning_rate=0.03)
    script = Script()
    trainer.fit(task, digits, ALONE, script)
    assert script.reports[-1].metrics["accuracy"] > 0.9


def test_read_only_arrays_train_without_a_warning_or_a_change(few_digits: ImageData, tmp_path: Path) -> None:
    frozen: ImageData = pickle.loads(pickle.dumps(few_digits))
    for split in (frozen.train, frozen.validation):
        split.images_NCHW.setflags(write=False)
        split.labels_N.setflags(write=False)
    trainer.fit(tiny_task(tmp_path, augmentation=1.0), frozen, ALONE, Script())
    np.testing.assert_array_equal(frozen.train.images_NCHW, few_digits.train.images_NCHW)


def test_fit_never_reads_the_test_split(few_digits: ImageData, tmp_path: Path) -> None:
    reports = []
    for test in (few_digits.test, None):
        data = _replace(few_digits, test=test)
        script = Script()
        trainer.fit(tiny_task(tmp_path), data, ALONE, script)
        reports.append([report.metrics["loss"] for report in script.reports])
    assert reports[0] == reports[1]


def test_evaluate_test_split_that_does_not_exist_raises(few_digits: ImageData, tmp_path: Path) -> None:
    task = tiny_task(tmp_path, epochs=1)
    trainer.fit(task, few_digits, ALONE, Script())
    with pytest.raises(BadDataError, match="no test split; set test_fraction above 0"):
        trainer.evaluate(_evaluation(task, "test"), _replace(few_digits, test=None), ALONE)


def test_unknown_metric_is_refused_with_the_nearest_and_all_names(few_digits: ImageData, tmp_path: Path) -> None:
    with pytest.raises(UserCodeError, match=r"no metric 'acuracy'; did you mean 'accuracy'.*balanced_accuracy, f1"):
        trainer.fit(tiny_task(tmp_path, metric="acuracy"), few_digits, ALONE, Script())


def test_diverging_loss_names_step_rate_precision_and_last_good_checkpoint(
    few_digits: ImageData, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"optimizer": "sgd", "gradient_clip": 0.0, "epochs": 3, "batch_size": 101}
    first = Script({1: Decision.PAUSE})
    trainer.fit(tiny_task(tmp_path, **settings, learning_rate=0.1), few_digits, ALONE, first)
    hot = tiny_task(tmp_path, **settings, learning_rate=1e38, resume_from="trial-0/epoch-0001.pt")
    with pytest.raises(
        NonFiniteLossError,
        match=r"loss is nan (at step 3 \(epoch 3|after epoch 2).*rate=.*e\+3.*precision=fp32.*epoch-000[12]\.pt",
    ):
        trainer.fit(hot, few_digits, ALONE, Script())


def test_epoch_that_diverged_leaves_no_checkpoint(few_digits: ImageData, tmp_path: Path) -> None:
    task = tiny_task(tmp_path, optimizer="sgd", learning_rate=1e30, gradient_clip=0.0)
    with pytest.raises(NonFiniteLossError, match="last good checkpoint: none"):
        trainer.fit(task, few_digits, ALONE, Script())
    assert not list(tmp_path.rglob("*.pt"))


def test_network_too_large_for_the_memory_is_a_device_memory_error(few_digits: ImageData, tmp_path: Path) -> None:
    with pytest.raises(DeviceMemoryError, match=r"batch_size=32.*smaller batch_size") as caught:
        trainer.fit(tiny_task(tmp_path, {"kind": "huge"}), few_digits, ALONE, Script())
    assert caught.value.cause == "oom"


def test_network_with_wrong_answers_is_refused_before_training(few_digits: ImageData, tmp_path: Path) -> None:
    with pytest.raises(UserCodeError, match=r"with \(1, 11\); needed: logits of shape \(1, 10\)"):
        trainer.fit(tiny_task(tmp_path, {"kind": "wrong_shape"}), few_digits, ALONE, Script())


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"seed": 8}, "seed: checkpoint 7, task 8"), ({"network": {"width": 5}}, "trial; width: checkpoint 4, task 5$")],
    ids=["seed", "configuration"],
)
def test_checkpoint_of_another_trial_is_refused(
    few_digits: ImageData, tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    trainer.fit(tiny_task(tmp_path, epochs=1), few_digits, ALONE, Script())
    other = tiny_task(tmp_path, **{"epochs": 2, **changed}, resume_from="trial-0/epoch-0001.pt")
    with pytest.raises(DamagedCheckpointError, match=message):
        trainer.fit(other, few_digits, ALONE, Script())


def test_resuming_on_changed_data_is_refused(few_digits: ImageData, digits: ImageData, tmp_path: Path) -> None:
    trainer.fit(tiny_task(tmp_path, epochs=1), few_digits, ALONE, Script())
    resumed = tiny_task(tmp_path, epochs=2, resume_from="trial-0/epoch-0001.pt")
    with pytest.raises(BadDataError, match=r"have changed since checkpoint trial-0/epoch-0001.pt"):
        trainer.fit(resumed, digits, ALONE, Script())


def test_evaluating_another_network_is_refused(few_digits: ImageData, tmp_path: Path) -> None:
    trainer.fit(tiny_task(tmp_path, epochs=1), few_digits, ALONE, Script())
    with pytest.raises(DamagedCheckpointError, match="does not fit the network"):
        trainer.evaluate(_evaluation(tiny_task(tmp_path, {"width": 9}, epochs=1)), few_digits, ALONE)


def test_early_stopping_ends_completed_before_the_last_epoch(few_digits: ImageData, tmp_path: Path) -> None:
    task = tiny_task(tmp_path, epochs=30, patience=2, min_change=1.0)
    result = trainer.fit(task, few_digits, ALONE, Script())
    assert (result.outcome, result.epoch) == ("completed", 3)


def test_finished_checkpoint_resumes_to_completed_without_training(few_digits: ImageData, tmp_path: Path) -> None:
    trainer.fit(tiny_task(tmp_path, epochs=1), few_digits, ALONE, Script())
    script = Script()
    task = tiny_task(tmp_path, epochs=1, resume_from="trial-0/epoch-0001.pt")
    result = trainer.fit(task, few_digits, ALONE, script)
    assert (result.outcome, result.epoch, script.reports) == ("completed", 1, [])


@pytest.mark.parametrize(
    ("requested", "used"), [("auto", "fp32"), ("fp32", "fp32"), ("bf16", "bf16"), ("fp16", "fp16")]
)
def test_facts_name_the_precision_really_used(few_digits: ImageData, tmp_path: Path, requested: str, used: str) -> None:
    result = trainer.fit(tiny_task(tmp_path, precision=requested, epochs=1), few_digits, ALONE, Script())
    assert result.facts["precision"] == used
    assert result.facts["parameters"] == 4 * 9 + 4 + 8 + 10 * 16 + 10
    assert result.facts["multiply_adds"] == 64 * 4 * 9 + 160
    assert result.facts["steps"] == 4 - int(str(result.facts["skipped_steps"]))
    json.dumps(dict(result.facts), allow_nan=False)


def _replace(data: ImageData, *, test: ImageSplit | None) -> ImageData:
    import dataclasses

    return dataclasses.replace(data, test=test)


def _evaluation(task: TrainTask, split: Any = "validation") -> EvaluateTask:
    return EvaluateTask(
        space=task.space,
        configuration=task.configuration,
        artifacts_root=task.artifacts_root,
        checkpoint=f"{task.checkpoint_dir}/epoch-{task.training.epochs:04d}.pt",
        split=split,
    )
