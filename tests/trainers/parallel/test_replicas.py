"""What ranks with whole copies of a network send each other."""

from pathlib import Path
from typing import Any

import pytest

from search_spaces.configuration import JsonScalar
from tests.trainers.rank_pool import RankPool
from tests.trainers.training import Script, assert_same_tensors, last_checkpoint, tiny_task
from trainers.config import TrainTask
from trainers.data.arrays import ImageData
from trainers.distributed import Ranks
from trainers.errors import UserCodeError
from trainers.reporting import TrialResult
from trainers.tasks import load_trainer

trainer = load_trainer("image_classification")
NO_NORM: dict[str, JsonScalar] = {"norm": "none"}
BF16: dict[str, Any] = {"gradient_compression": "bf16", "optimizer": "sgd", "learning_rate": 0.1, "gradient_clip": 0.0}


def fit(ranks: Ranks, task: TrainTask, data: ImageData) -> TrialResult:
    return trainer.fit(task, data, ranks, Script())


def test_gradients_sent_in_bf16_are_rounded_and_equal_on_all_ranks(
    pair: RankPool, few_digits: ImageData, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {**BF16, "epochs": 1, "accumulate": 2}
    fit(Ranks.alone("cpu"), tiny_task(tmp_path / "1", NO_NORM, **settings), few_digits)
    replies = pair.run(fit, tiny_task(tmp_path / "2", NO_NORM, **settings), few_digits)
    assert [reply.facts["parallel"] for reply in replies] == ["ddp"] * 2  # weights were compared after the epoch
    one, two = last_checkpoint(tmp_path / "1"), last_checkpoint(tmp_path / "2")
    assert_same_tensors(dict(one.network), dict(two.network), 5e-3)
    with pytest.raises(AssertionError):
        assert_same_tensors(dict(one.network), dict(two.network), 1e-6)


@pytest.mark.parametrize("parallel", ["fsdp", "pipeline"])
def test_compression_is_refused_where_no_whole_gradients_are_sent(
    pair: RankPool, few_digits: ImageData, tmp_path: Path, parallel: str
) -> None:
    errors = pair.run(fit, tiny_task(tmp_path, parallel=parallel, **BF16), few_digits)
    assert [type(error) for error in errors] == [UserCodeError] * 2
    assert str(errors[0]).endswith(f"with parallel={parallel} leave it at none")
    result = fit(Ranks.alone("cpu"), tiny_task(tmp_path, parallel=parallel, **BF16), few_digits)
    assert result.facts["parallel"] == "none"
