"""What must hold with each method switched on, as without any."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from search_spaces.configuration import JsonScalar
from tests.trainers.rank_pool import RankPool
from tests.trainers.training import Script, assert_same_tensors, evaluation_of, last_checkpoint, timeless, tiny_task
from trainers.config import TrainTask
from trainers.data.arrays import ImageData
from trainers.distributed import Ranks
from trainers.reporting import Decision, Report
from trainers.tasks import load_trainer

trainer = load_trainer("image_classification")
ALONE = Ranks.alone("cpu")

METHODS: dict[str, dict[str, Any]] = {
    "mixup": {"mixup": 0.4},
    "cutmix": {"cutmix": 1.0},
    "mixup or cutmix": {"mixup": 0.4, "cutmix": 1.0, "label_smoothing": 0.1},
    "random erasing": {"random_erasing": 0.7},
    "rand augment": {"rand_augment": 0.5},
    "all changes": {"augmentation": 0.5, "rand_augment": 1.0, "random_erasing": 0.5, "mixup": 1.0},
    "ema": {"ema": 0.9},
    "l1": {"l1": 1e-3},
    "distillation": {"distillation": 0.7, "temperature": 3.0, "mixup": 0.4},
}
"""Settings that switch each method on; `distillation` is given its teacher when there is one."""

Settings = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="session")
def settings_of(few_digits: ImageData, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("teacher")
    trainer.fit(tiny_task(folder, {"width": 8, "norm": "none"}, epochs=1, seed=1), few_digits, ALONE, Script())
    teacher = str(folder / "trial-0" / "epoch-0001.pt")
    return lambda name: {**METHODS[name], **({"teacher": teacher} if name == "distillation" else {})}


@pytest.fixture
def settings(request: pytest.FixtureRequest, settings_of: Settings) -> dict[str, Any]:
    return settings_of(request.param)


each_method = pytest.mark.parametrize("settings", list(METHODS), indirect=True)


def fit(ranks: Ranks, task: TrainTask, data: ImageData) -> list[Report]:
    script = Script()
    trainer.fit(task, data, ranks, script)
    return script.reports


@each_method
def test_resumed_equals_uninterrupted_to_the_last_bit_and_draws_globally_nothing(
    few_digits: ImageData, tmp_path: Path, settings: dict[str, Any]
) -> None:
    network: dict[str, JsonScalar] = {"dropout": 0.5}
    whole, first, second = Script(), Script({1: Decision.PAUSE}), Script()
    task = tiny_task(tmp_path / "whole", network, **settings)
    before = torch.get_rng_state(), repr(np.random.get_state())
    trainer.fit(task, few_digits, ALONE, whole)
    assert torch.equal(before[0], torch.get_rng_state()) and before[1] == repr(np.random.get_state())

    trainer.fit(tiny_task(tmp_path / "parts", network, **settings), few_digits, ALONE, first)
    torch.manual_seed(12345)  # the second part runs in another process, whose generators stand elsewhere
    resumed = tiny_task(tmp_path / "parts", network, resume_from="trial-0/epoch-0001.pt", **settings)
    trainer.fit(resumed, few_digits, ALONE, second)

    reports = first.reports + second.reports
    assert [timeless(report) for report in reports] == [timeless(report) for report in whole.reports]
    left, right = last_checkpoint(tmp_path / "whole"), last_checkpoint(tmp_path / "parts")
    assert_same_tensors(dict(left.network), dict(right.network))
    assert_same_tensors(dict(left.optimization), dict(right.optimization))
    for name, value in trainer.evaluate(evaluation_of(task), few_digits, ALONE).items():
        assert whole.reports[-1].metrics[name] == value


@each_method
def test_two_ranks_and_accumulation_equal_one_rank_with_big_batches(
    pair: RankPool, few_digits: ImageData, tmp_path: Path, settings: dict[str, Any]
) -> None:
    common = {"optimizer": "sgd", "learning_rate": 0.1, "epochs": 1, **settings}
    whole = fit(ALONE, tiny_task(tmp_path / "whole", {"norm": "none"}, **common), few_digits)
    cut = fit(ALONE, tiny_task(tmp_path / "cut", {"norm": "none"}, accumulate=3, **common), few_digits)
    shared, _ = pair.run(fit, tiny_task(tmp_path / "shared", {"norm": "none"}, **common), few_digits)

    expected = last_checkpoint(tmp_path / "whole")
    for name, reports in (("cut", cut), ("shared", shared)):
        assert_same_tensors(dict(expected.network), dict(last_checkpoint(tmp_path / name).network), tolerance=1e-5)
        for metric in ("train_loss", "loss"):
            assert reports[-1].metrics[metric] == pytest.approx(whole[-1].metrics[metric], abs=1e-5)


@each_method
def test_a_method_that_is_on_changes_what_is_learned(
    few_digits: ImageData, tmp_path: Path, settings: dict[str, Any]
) -> None:
    for name, chosen in (("with", settings), ("without", {})):
        fit(ALONE, tiny_task(tmp_path / name, epochs=1, **chosen), few_digits)
    ours, theirs = (last_checkpoint(tmp_path / name).network for name in ("with", "without"))
    assert any(not torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("parallel", ["ddp", "fsdp", "pipeline"])
def test_all_methods_at_once_are_the_same_in_every_way_of_sharing_a_network(
    pair: RankPool, few_digits: ImageData, tmp_path: Path, settings_of: Settings, parallel: str
) -> None:
    settings = {name: value for method in METHODS for name, value in settings_of(method).items()}

    def task(folder: str) -> TrainTask:
        task = tiny_task(tmp_path / folder, optimizer="sgd", learning_rate=0.1, parallel=parallel, **settings)
        chain = {"norm": "none", "dropout": 0.0, "kind": "sound"}
        return task.model_copy(update={"space": "tests.trainers.parallel.chain_space", "configuration": chain})

    alone = fit(ALONE, task("alone"), few_digits)
    shared, _ = pair.run(fit, task("shared"), few_digits)
    ours, theirs = last_checkpoint(tmp_path / "shared"), last_checkpoint(tmp_path / "alone")
    assert_same_tensors(dict(ours.network), dict(theirs.network), tolerance=1e-5)
    for metric in ("train_loss", "loss"):
        assert shared[-1].metrics[metric] == pytest.approx(alone[-1].metrics[metric], abs=1e-5)
