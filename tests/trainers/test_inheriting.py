"""A child begins where its parent ended, and goes on from its own checkpoint once it has one."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.trainers.training import assert_same_tensors, fit, tiny_task
from trainers.checkpoint import read_checkpoint, write_checkpoint
from trainers.config import TrainConfig, TrainTask
from trainers.data.arrays import ImageData
from trainers.distributed import Ranks
from trainers.errors import BadDataError, DamagedCheckpointError
from trainers.image_problem import ImageProblem
from trainers.inheriting import inherit_weights
from trainers.learner import Learner
from trainers.reporting import Decision
from trainers.watching import Watch

ALONE = Ranks.alone("cpu")
PARENT = "trial-0/epoch-0002.pt"
SMALL = {"width": 4}


@pytest.fixture(scope="module")
def root(few_digits: ImageData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a parent has left its checkpoints."""
    folder = tmp_path_factory.mktemp("inheriting")
    fit(ALONE, tiny_task(folder, SMALL, learning_rate=0.05, batch_size=4), few_digits)
    return folder


def child_task(root: Path, network: dict[str, Any] | None = None, **changes: Any) -> TrainTask:
    resume_from = changes.pop("resume_from", None)
    task = tiny_task(root, network or SMALL, **{"seed": 8, **changes})
    return task.model_copy(update={"inherit": PARENT, "checkpoint_dir": "trial-1", "resume_from": resume_from})


def untrained(task: TrainTask, data: ImageData) -> Learner:
    problem = ImageProblem(data, TrainConfig(), torch.device("cpu"))
    with torch.random.fork_rng():
        return Learner(task, problem, ALONE, Watch(task, ALONE))


@pytest.mark.parametrize(
    "network", [SMALL, {"width": 16}, {"width": 4, "dropout": 0.5}], ids=["equal", "wider", "dropout"]
)
def test_child_measures_before_its_first_step_what_its_parent_measured_last(
    few_digits: ImageData, root: Path, network: dict[str, Any]
) -> None:
    parent = read_checkpoint(root / PARENT).metrics
    fresh = untrained(child_task(root, network).model_copy(update={"inherit": None}), few_digits).measure()
    child = untrained(child_task(root, network), few_digits).measure()
    assert child["accuracy"] == parent["accuracy"]
    assert child["loss"] == pytest.approx(parent["loss"], abs=1e-5)
    assert child["loss"] < fresh["loss"] - 0.01


def test_child_with_a_moving_average_begins_with_its_parents_weights_in_it(few_digits: ImageData, root: Path) -> None:
    child = untrained(child_task(root, ema=0.9), few_digits)
    assert child.measure()["loss"] == pytest.approx(read_checkpoint(root / PARENT).metrics["loss"], abs=1e-6)


def test_share_is_a_fact_of_a_child_only(few_digits: ImageData, root: Path) -> None:
    whole, _ = fit(ALONE, child_task(root, epochs=1), few_digits)
    part, _ = fit(ALONE, child_task(root, {"width": 8}, epochs=1), few_digits)
    alone, _ = fit(ALONE, child_task(root, epochs=1).model_copy(update={"inherit": None}), few_digits)
    assert whole.facts["inherited_share"] == 1.0
    assert part.facts["inherited_share"] == pytest.approx((4 * 10 + 4 * 2 + 16 * 10 + 10) / (8 * 10 + 8 * 2 + 330))
    assert "inherited_share" not in alone.facts


def test_own_checkpoint_wins_over_the_parents(few_digits: ImageData, root: Path) -> None:
    unbroken = child_task(root, {"width": 8})
    fit(ALONE, unbroken, few_digits)
    expected = read_checkpoint(root / "trial-1/epoch-0002.pt")
    fit(ALONE, child_task(root, {"width": 8}), few_digits, {1: Decision.PAUSE})
    fit(ALONE, child_task(root, {"width": 8}, resume_from="trial-1/epoch-0001.pt"), few_digits)
    assert_same_tensors(read_checkpoint(root / "trial-1/epoch-0002.pt").network, expected.network)


def test_widened_network_is_tried_with_an_item_before_it_is_trained(few_digits: ImageData, root: Path) -> None:
    def softened(width: int) -> nn.Module:
        pixels = torch.Size(few_digits.input_shape).numel()
        return nn.Sequential(nn.Flatten(), nn.Linear(pixels, width), nn.Softmax(dim=1), nn.Linear(width, 10))

    state = softened(4).state_dict()
    write_checkpoint(dataclasses.replace(read_checkpoint(root / PARENT), network=state), root, "softened.pt")
    problem = ImageProblem(few_digits, TrainConfig(), torch.device("cpu"))
    task = child_task(root).model_copy(update={"inherit": "softened.pt"})
    found = inherit_weights(task, softened(8), problem, problem.example().inputs)
    assert found is not None
    assert (found.taken, found.widened) == (("3.bias",), ())


def test_parent_of_other_data_is_refused(few_digits: ImageData, root: Path) -> None:
    parent = read_checkpoint(root / PARENT)
    other = dataclasses.replace(parent, blueprint={**parent.blueprint, "fingerprint": "other"})
    write_checkpoint(other, root, "other.pt")
    with pytest.raises(BadDataError, match="fingerprint other"):
        fit(ALONE, child_task(root).model_copy(update={"inherit": "other.pt"}), few_digits)


def test_parent_that_is_gone_is_named(few_digits: ImageData, root: Path) -> None:
    with pytest.raises(DamagedCheckpointError, match=r"weights to inherit: .*gone\.pt is missing"):
        fit(ALONE, child_task(root).model_copy(update={"inherit": "gone.pt"}), few_digits)


def test_place_outside_of_the_root_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="relative to artifacts_root"):
        TrainTask(
            space="nas_small", configuration={}, artifacts_root=str(tmp_path), checkpoint_dir="a", inherit="../b.pt"
        )
