"""A compiled network trains as any other, and a machine that cannot compile says so and goes on."""

from pathlib import Path
from typing import Any

import pytest

from search_spaces.configuration import JsonScalar
from tests.trainers.rank_pool import RankPool
from tests.trainers.training import Script, assert_same_tensors, last_checkpoint, timeless, tiny_task
from trainers.config import TrainTask
from trainers.data.arrays import ImageData
from trainers.distributed import Ranks
from trainers.reporting import Decision, TrialResult
from trainers.tasks import load_trainer

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # of torch's own code

trainer = load_trainer("image_classification")
ALONE = Ranks.alone("cpu")
# One shape in training and one in validation: each is compiled.
SETTINGS: dict[str, Any] = {"batch_size": 101, "epochs": 3, "compile": True}


def fit(ranks: Ranks, task: TrainTask, data: ImageData) -> TrialResult:
    return trainer.fit(task, data, ranks, Script())


@pytest.mark.slow
def test_compiled_training_resumed_equals_uninterrupted_one_to_the_last_bit(
    few_digits: ImageData, tmp_path: Path
) -> None:
    network: dict[str, JsonScalar] = {"dropout": 0.3}
    whole, first, second = Script(), Script({1: Decision.PAUSE}), Script()
    result = trainer.fit(tiny_task(tmp_path / "whole", network, **SETTINGS), few_digits, ALONE, whole)
    trainer.fit(tiny_task(tmp_path / "parts", network, **SETTINGS), few_digits, ALONE, first)
    resumed = tiny_task(tmp_path / "parts", network, resume_from="trial-0/epoch-0001.pt", **SETTINGS)
    trainer.fit(resumed, few_digits, ALONE, second)

    assert result.facts["compiled"] is True
    spent_s = result.facts["compile_s"]
    first_epoch_s = whole.reports[0].metrics["epoch_s"]
    assert isinstance(spent_s, float)
    assert 0.8 * first_epoch_s < spent_s < first_epoch_s, "backward and validation are compiled in it, too"
    assert [timeless(report) for report in first.reports + second.reports] == [timeless(r) for r in whole.reports]
    left, right = last_checkpoint(tmp_path / "whole"), last_checkpoint(tmp_path / "parts")
    assert_same_tensors(dict(left.network), dict(right.network))
    assert_same_tensors(dict(left.optimization), dict(right.optimization))


@pytest.mark.slow
def test_two_ranks_that_compile_equal_one_that_does_not(pair: RankPool, few_digits: ImageData, tmp_path: Path) -> None:
    settings = {**SETTINGS, "epochs": 1, "optimizer": "sgd"}
    network: dict[str, JsonScalar] = {"norm": "none"}
    results = pair.run(fit, tiny_task(tmp_path / "2", network, **settings), few_digits)
    trainer.fit(tiny_task(tmp_path / "1", network, **{**settings, "compile": False}), few_digits, ALONE, Script())
    assert [result.facts["compiled"] for result in results] == [True, True]
    one, two = last_checkpoint(tmp_path / "1"), last_checkpoint(tmp_path / "2")
    assert_same_tensors(dict(one.network), dict(two.network), 1e-5)


@pytest.mark.slow
def test_without_a_compiler_the_training_goes_on_and_its_record_says_why(
    monkeypatch: pytest.MonkeyPatch, few_digits: ImageData, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from torch._inductor import config

    monkeypatch.setattr(config.cpp, "cxx", (None, "/no/such/compiler"))
    result = trainer.fit(tiny_task(tmp_path, {"width": 5}, **{**SETTINGS, "epochs": 1}), few_digits, ALONE, Script())
    assert (result.outcome, result.facts["compiled"]) == ("completed", False)
    assert "/no/such/compiler" in str(result.facts["compile_failure"])
    assert sum("not compiled, goes on without" in message for message in caplog.messages) == 1
