"""What only data and networks can tell is told before anything is trained."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.trainers.training import PLAIN, Script, tiny_task
from trainers import networks
from trainers.config import TrainConfig
from trainers.data.arrays import ImageData
from trainers.data.spec import DataSpec
from trainers.distributed import Ranks
from trainers.errors import UserCodeError
from trainers.tasks import load_trainer

TRAINER = load_trainer("image_classification")
CHAIN = "tests.trainers.parallel.chain_space"
SOUND: dict[str, Any] = {"norm": "none", "dropout": 0.0, "kind": "sound"}
PIPELINE = TrainConfig(parallel="pipeline")


def told(data: ImageData, ranks: int, *kinds: str) -> list[str]:
    configurations = [{**SOUND, "kind": kind} for kind in kinds]
    return TRAINER.mistakes_once_loaded(PIPELINE, CHAIN, configurations, data, ranks)


@pytest.mark.parametrize(
    "kinds, ranks, words",
    [
        (["sound"], 2, ""),
        (["sound"], 9, "as many stages as there are ranks, 9"),
        (["no_chain"], 2, "needs a chain of layers, and OwnWay"),
        (["shared_weight"], 2, "two of the stages use it"),
        (["one_layer"], 2, "as there are ranks, 2"),
        (["no_chain", "one_layer", "sound"], 2, ""),
        (["no_chain", "one_layer"], 2, "OwnWay"),
        (["no_chain"], 1, ""),
    ],
)
def test_pipeline_that_no_network_can_be_is_told(
    few_digits: ImageData, kinds: list[str], ranks: int, words: str
) -> None:
    state = torch.random.get_rng_state()
    found = told(few_digits, ranks, *kinds)
    assert len(found) == (1 if words else 0) and words in "".join(found)
    assert torch.equal(state, torch.random.get_rng_state())


def test_network_that_cannot_be_built_is_left_to_the_training(
    few_digits: ImageData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(networks, "build_network", partial(pytest.fail, "no network"))
    assert TRAINER.mistakes_once_loaded(TrainConfig(), CHAIN, [SOUND], few_digits, 2) == []
    monkeypatch.setattr(networks, "build_network", lambda *given: 1 / 0)
    assert told(few_digits, 2, "sound") == []


def test_teacher_that_nothing_can_be_learned_from_is_told(few_digits: ImageData, tmp_path: Path) -> None:
    TRAINER.fit(tiny_task(tmp_path, {"norm": "none"}, epochs=1), few_digits, Ranks.alone("cpu"), Script())
    good = tmp_path / "trial-0" / "epoch-0001.pt"

    def told_of(file: Path, data: ImageData = few_digits) -> list[str]:
        training = TrainConfig(teacher=str(file))
        return TRAINER.mistakes_once_loaded(training, "tests.trainers.tiny_space", [PLAIN], data, 1)

    assert told_of(good) == []
    damaged = tmp_path / "damaged.pt"
    content = bytearray(good.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 400] = bytes(400)
    damaged.write_bytes(bytes(content))
    assert "is cut short or damaged" in told_of(damaged)[0]
    other = few_digits.__class__(
        **{**{n: getattr(few_digits, n) for n in few_digits.__slots__}, "fingerprint": "0" * 64}
    )
    assert "has learned from other data; fingerprint" in told_of(good, other)[0]


def test_teacher_that_is_no_checkpoint_is_the_persons_mistake(few_digits: ImageData, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a,b\n1,2\n")
    training = TrainConfig(teacher=str(table))
    (sentence,) = TRAINER.mistakes(training, DataSpec())
    assert sentence.startswith(f"teacher={str(table)!r}: this file is no checkpoint of ours; give")
    with pytest.raises(UserCodeError, match=r"teacher: checkpoint .* is cut short or damaged"):
        task = tiny_task(tmp_path, teacher=str(table))
        TRAINER.fit(task, few_digits, Ranks.alone("cpu"), Script())
