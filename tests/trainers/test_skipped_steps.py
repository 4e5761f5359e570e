"""Steps that fp16 skips are told, and a training of which no step is made ends."""

from pathlib import Path

import pytest
import torch
from torch import nn

from tests.trainers.training import Script, tiny_task
from trainers.checkpoint import read_checkpoint
from trainers.data.arrays import ImageData
from trainers.distributed import Ranks
from trainers.errors import NonFiniteLossError
from trainers.finite import check_steps
from trainers.losses import Loss
from trainers.precision import MixedPrecision
from trainers.reporting import Decision
from trainers.tasks import load_trainer


@pytest.fixture
def overflowing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every loss is a number, and every gradient is infinite."""

    def build(*_: object) -> Loss:
        def losses(answers: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            differences = answers.float()[:, 0]
            return (differences - differences.detach()).clamp(min=0.0).sqrt()  # the slope of a root at 0

        return losses

    monkeypatch.setattr("trainers.image_problem.build_loss", build)


@pytest.mark.usefixtures("overflowing")
def test_training_without_a_step_warns_and_ends(
    few_digits: ImageData, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    task = tiny_task(tmp_path, precision="fp16", epochs=5)
    script = Script()
    with pytest.raises(NonFiniteLossError) as caught:
        load_trainer("image_classification").fit(task, few_digits, Ranks.alone("cpu"), script)
    assert str(caught.value) == (
        "no step of epoch 2 was made: the gradients of the last 8 steps were NaN or infinite (precision=fp16); give "
        "precision bf16 or fp32, or a smaller learning_rate; last good checkpoint: trial-0/epoch-0001.pt"
    )
    assert [report.epoch for report in script.reports] == [1]
    assert "gradients overflow: 4 of 4 steps of epoch 1 were skipped" in caplog.text


@pytest.mark.usefixtures("overflowing")
def test_steps_skipped_in_a_row_are_kept_by_a_checkpoint(few_digits: ImageData, tmp_path: Path) -> None:
    trainer, ranks = load_trainer("image_classification"), Ranks.alone("cpu")
    trainer.fit(tiny_task(tmp_path, precision="fp16"), few_digits, ranks, Script({1: Decision.PAUSE}))
    kept = read_checkpoint(tmp_path / "trial-0/epoch-0001.pt").optimization
    assert (kept["steps_made"], kept["skipped_steps"], kept["skipped_in_a_row"]) == (0, 4, 4)
    with pytest.raises(NonFiniteLossError, match="the last 8 steps"):
        resumed = tiny_task(tmp_path, precision="fp16", resume_from="trial-0/epoch-0001.pt")
        trainer.fit(resumed, few_digits, ranks, Script())


@pytest.mark.parametrize("made, in_a_row, epoch", [(1, 0, 5), (0, 7, 5), (0, 30, 1)])
def test_training_whose_scale_is_still_looked_for_goes_on(made: int, in_a_row: int, epoch: int) -> None:
    check_steps(made, in_a_row, epoch=epoch, precision="fp16", checkpoint=None)


def test_step_is_never_made_by_a_scale_that_has_fallen_to_zero() -> None:
    weight = nn.Parameter(torch.ones(1))
    optimizer, precision = torch.optim.SGD([weight], lr=0.1), MixedPrecision("fp16", torch.device("cpu"))

    def step(gradient: float) -> bool:
        precision.scale(weight.sum() * 0.0)
        weight.grad = torch.full_like(weight, gradient)
        return precision.step(optimizer)

    assert step(1.0)
    assert not any(step(torch.inf) for _ in range(200)), "the scale is 0 after 166 halvings"
    assert weight.item() == pytest.approx(1.0 - 0.1 / 65536)
