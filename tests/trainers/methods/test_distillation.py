import dataclasses
import logging
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.trainers.training import Script, last_checkpoint, tiny_task
from trainers.checkpoint import read_checkpoint, write_checkpoint
from trainers.config import TrainConfig
from trainers.data.arrays import ImageData
from trainers.distributed import Ranks
from trainers.errors import UserCodeError
from trainers.image_problem import ImageProblem
from trainers.methods.distillation import Distillation, distillation_losses, load_teacher
from trainers.precision import MixedPrecision
from trainers.problem import Batch
from trainers.tasks import load_trainer

trainer = load_trainer("image_classification")
ALONE = Ranks.alone("cpu")
CPU = torch.device("cpu")
NAME = "trial-0/epoch-0002.pt"


@pytest.fixture(scope="module")
def teacher(few_digits: ImageData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("teacher")
    trainer.fit(tiny_task(folder, {"width": 12, "norm": "batch"}, seed=1), few_digits, ALONE, Script())
    return folder / NAME


def altered(teacher: Path, folder: Path, blueprint: dict[str, Any], **fields: Any) -> str:
    """Write the teacher's checkpoint once more, with another blueprint or other fields."""
    checkpoint = read_checkpoint(teacher)
    changed = dataclasses.replace(checkpoint, blueprint={**checkpoint.blueprint, **blueprint}, **fields)
    write_checkpoint(changed, folder, "altered.pt")
    return str(folder / "altered.pt")


def problem(data: ImageData) -> ImageProblem:
    return ImageProblem(data, TrainConfig(), CPU)


def test_losses_are_the_scaled_divergence_of_softened_answers() -> None:
    generator = torch.Generator().manual_seed(0)
    student, teacher = torch.randn(4, 3, generator=generator), torch.randn(4, 3, generator=generator)
    p, q = torch.softmax(teacher / 3.0, dim=1), torch.softmax(student / 3.0, dim=1)
    expected = 9.0 * (p * (p / q).log()).sum(dim=1)
    torch.testing.assert_close(distillation_losses(student, teacher, 3.0), expected)
    torch.testing.assert_close(distillation_losses(teacher, teacher, 3.0), torch.zeros(4))
    assert distillation_losses(student[:0], teacher[:0], 3.0).shape == (0,)


def test_gradient_at_a_high_temperature_is_that_of_matching_logits() -> None:
    # equation 4 of the paper, for logits with mean 0
    student = torch.tensor([[1.0, -2.0, 1.0]], requires_grad=True)
    teacher = torch.tensor([[0.5, 0.5, -1.0]])
    distillation_losses(student, teacher, 1000.0).sum().backward()  # type: ignore[no-untyped-call]  # untyped in torch
    assert student.grad is not None
    torch.testing.assert_close(student.grad, (student.detach() - teacher) / 3.0, atol=1e-2, rtol=0.0)


def test_losses_of_classes_and_teacher_are_weighted() -> None:
    method = Distillation(nn.Identity(), 2.0, 0.25, MixedPrecision("fp32", CPU))
    inputs, answers = torch.tensor([[3.0, 0.0]]), torch.tensor([[0.0, 1.0]], requires_grad=True)
    losses = method.losses(Batch((inputs,), torch.tensor([0])), answers, torch.tensor([8.0]))
    torch.testing.assert_close(losses, 6.0 + 0.25 * distillation_losses(answers, inputs, 2.0))


@pytest.mark.parametrize("shape", [(2, 3), (1, 2, 5)])
def test_answers_that_are_no_logits_of_the_same_classes_are_refused(shape: tuple[int, ...]) -> None:
    method = Distillation(nn.Identity(), 2.0, 0.5, MixedPrecision("fp32", CPU))
    with pytest.raises(UserCodeError, match="cannot be compared with its teacher's of"):
        method.losses(Batch((torch.zeros(2, 5),), torch.zeros(2)), torch.zeros(shape), torch.zeros(2))


def test_teacher_has_the_weights_that_were_measured_and_does_not_move(few_digits: ImageData, teacher: Path) -> None:
    network = load_teacher(str(teacher), problem(few_digits), CPU)
    assert not network.training and not any(weight.requires_grad for weight in network.parameters())
    for name, tensor in read_checkpoint(teacher).network.items():
        assert torch.equal(network.state_dict()[name], tensor)


def test_student_learns_from_the_teacher_alone_and_keeps_none_of_its_weights(
    few_digits: ImageData, teacher: Path, tmp_path: Path
) -> None:
    script = Script()
    settings: dict[str, Any] = {"epochs": 6, "learning_rate": 0.05, "temperature": 1.0, "distillation": 1.0}
    trainer.fit(tiny_task(tmp_path, teacher=str(teacher), **settings), few_digits, ALONE, script)
    divergences = [report.metrics["train_loss"] for report in script.reports]
    assert divergences[-1] < 0.5 * divergences[0]
    checkpoint = last_checkpoint(tmp_path)
    assert len(checkpoint.network["0.weight"]) == 4 and checkpoint.optimization["methods"] == {"Distillation": {}}


@pytest.mark.parametrize(
    "blueprint",
    [{"fingerprint": "0123"}, {"class_names": ["a", "b"]}, {"mean": [0.5]}, {"input_shape": [3, 32, 32]}],
    ids=lambda blueprint: next(iter(blueprint)),
)
def test_teacher_of_other_data_is_refused_with_both_sides(
    few_digits: ImageData, teacher: Path, tmp_path: Path, blueprint: dict[str, Any]
) -> None:
    location = altered(teacher, tmp_path, blueprint)
    (name, value), ours = next(iter(blueprint.items())), problem(few_digits)
    with pytest.raises(UserCodeError) as caught:
        load_teacher(location, ours, CPU)
    message = str(caught.value)
    assert location in message and f"{name}: teacher {value!r}, student" in message
    if name == "fingerprint":
        assert few_digits.fingerprint[:8] in message


def test_teacher_of_data_that_differ_in_all_is_refused_for_the_form_and_the_rest_is_for_debugging(
    few_digits: ImageData, teacher: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    names = [str(number) for number in range(1000)]
    others = {"fingerprint": "0123", "input_shape": [3, 32, 32], "class_names": names, "mean": [0.5] * 3, "std": [1.0]}
    location = altered(teacher, tmp_path, others)
    with caplog.at_level(logging.DEBUG, logger="trainers"), pytest.raises(UserCodeError) as caught:
        load_teacher(location, problem(few_digits), CPU)
    message = str(caught.value).replace(location, "")
    assert "input_shape: teacher [3, 32, 32], student [1, 8, 8]; class_names: teacher ['0', " in message
    assert len(message) < 350 and not {"fingerprint", "mean", "std"} & set(re.findall(r"\w+(?=: teacher)", message))
    assert "fingerprint: teacher '0123'" in caplog.text and "mean: teacher" in caplog.text


@pytest.mark.parametrize("blueprint", [{"space": None}, {"configuration": [1]}], ids=lambda value: next(iter(value)))
def test_teacher_that_does_not_say_what_builds_it_is_refused(
    few_digits: ImageData, teacher: Path, tmp_path: Path, blueprint: dict[str, Any]
) -> None:
    with pytest.raises(UserCodeError, match=r"altered.pt does not say by which search space its network is built"):
        load_teacher(altered(teacher, tmp_path, blueprint), problem(few_digits), CPU)


def test_teacher_whose_space_is_gone_is_refused(few_digits: ImageData, teacher: Path, tmp_path: Path) -> None:
    with pytest.raises(UserCodeError, match="no search space 'nas_smal'"):
        load_teacher(altered(teacher, tmp_path, {"space": "nas_smal"}), problem(few_digits), CPU)


def test_teacher_that_does_not_fit_its_network_is_damaged(few_digits: ImageData, teacher: Path, tmp_path: Path) -> None:
    location = altered(teacher, tmp_path, {}, network={"0.weight": torch.zeros(2)})
    with pytest.raises(UserCodeError, match="does not fit the network that it names"):
        load_teacher(location, problem(few_digits), CPU)


def test_missing_and_cut_teachers_are_refused(few_digits: ImageData, teacher: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pt"
    cut.write_bytes(teacher.read_bytes()[:-100])
    for path, reason in ((tmp_path / "none.pt", "is missing"), (cut, "is cut short or damaged")):
        task = tiny_task(tmp_path / "student", teacher=str(path))
        with pytest.raises(UserCodeError, match=f"teacher: checkpoint {path} {reason}"):
            trainer.fit(task, few_digits, ALONE, Script())
