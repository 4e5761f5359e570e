from pathlib import Path
from typing import Any

import pytest
import torch

from tests.trainers.training import tiny_task
from trainers.config import TrainConfig
from trainers.data.arrays import ImageData
from trainers.distributed import Ranks
from trainers.errors import UserCodeError
from trainers.image_problem import ImageProblem
from trainers.methods.building import build_methods
from trainers.problem import Batch

ALONE = Ranks.alone("cpu")


class Numbers(ImageProblem):
    """A problem that tells numbers, and whose items are not images."""

    has_images = False

    def example(self) -> Batch:
        return Batch(super().example().inputs, torch.zeros(1))


def names(data: ImageData, folder: Path, kind: type[ImageProblem] = ImageProblem, **training: Any) -> list[str]:
    problem = kind(data, TrainConfig(), ALONE.device)
    return [type(method).__name__ for method in build_methods(tiny_task(folder, **training), problem, ALONE)]


def test_only_what_is_switched_on_is_there(few_digits: ImageData, tmp_path: Path) -> None:
    assert names(few_digits, tmp_path) == []
    assert names(few_digits, tmp_path, mixup=0.2, cutmix=0.2, l1=0.1, ema=0.9) == [
        "Mixing",
        "L1Penalty",
        "MovingAverage",
    ]


def test_weights_may_be_treated_alike_for_every_task(few_digits: ImageData, tmp_path: Path) -> None:
    assert names(few_digits, tmp_path, Numbers, l1=0.1, ema=0.9) == ["L1Penalty", "MovingAverage"]


def test_what_a_task_cannot_do_is_refused_all_at_once(few_digits: ImageData, tmp_path: Path) -> None:
    with pytest.raises(UserCodeError) as caught:
        names(few_digits, tmp_path, Numbers, mixup=0.2, rand_augment=0.5, teacher="teacher.pt")
    message = str(caught.value)
    assert "rand_augment=0.5 and mixup=0.2: only images are changed or mixed" in message
    assert "teacher='teacher.pt'" in message and "tells no classes" in message


def test_settings_of_a_teacher_without_one_are_refused(few_digits: ImageData, tmp_path: Path) -> None:
    with pytest.raises(UserCodeError, match=r"temperature=3\.0 and distillation=0\.9: there is no teacher"):
        names(few_digits, tmp_path, temperature=3.0, distillation=0.9)
