"""A precision that a device cannot compute in is refused with what it can; nothing else is."""

from functools import partial
from pathlib import Path

import pytest
import torch

from tests.trainers.training import Script, tiny_task
from trainers.checkpoint import read_checkpoint
from trainers.config import Precision
from trainers.data.arrays import ImageData
from trainers.distributed import Ranks
from trainers.errors import UnsupportedDeviceError
from trainers.image_problem import ImageProblem
from trainers.learner import Learner
from trainers.precision import UsedPrecision, check_precision, float32_arithmetic, unsupported
from trainers.reporting import Decision
from trainers.tasks import load_trainer
from trainers.watching import Watch


@pytest.mark.parametrize("requested", ["auto", "fp32", "tf32", "bf16", "fp16"])
def test_cpu_computes_in_every_precision(requested: Precision) -> None:
    assert unsupported(requested, "cpu", None) is None
    check_precision(requested, torch.device("cpu"))


@pytest.mark.parametrize(
    "requested, capability, fits",
    [
        ("bf16", (7, 0), False), ("bf16", (7, 5), False), ("bf16", (8, 0), True), ("bf16", (12, 0), True),
        ("fp16", (5, 2), False), ("fp16", (5, 3), True), ("fp32", (3, 5), True), ("auto", (3, 5), True),
        ("bf16", None, True),
    ],
)  # fmt: skip
def test_gpu_computes_in_what_its_capability_has(
    requested: Precision, capability: tuple[int, int] | None, fits: bool
) -> None:
    assert (unsupported(requested, "cuda", capability) is None) == fits


@pytest.fixture
def old_gpu(monkeypatch: pytest.MonkeyPatch) -> torch.device:
    """A GPU of capability 7.0, as far as torch is asked for it."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Old GPU")
    return torch.device("cuda", 1)


def test_refusal_names_the_device_what_it_can_and_what_to_do(old_gpu: torch.device) -> None:
    with pytest.raises(UnsupportedDeviceError) as caught:
        check_precision("bf16", old_gpu)
    assert str(caught.value) == (
        "cuda:1 (Old GPU): precision bf16 needs compute capability 8.0 or higher, and this GPU has 7.0, which computes "
        "in fp32 and fp16; use --precision auto"
    )
    assert caught.value.cause == "user_error"
    check_precision("fp16", old_gpu)
    check_precision("auto", old_gpu)


def test_training_asks_its_device_before_it_computes(
    monkeypatch: pytest.MonkeyPatch, few_digits: ImageData, tmp_path: Path
) -> None:
    asked: list[tuple[str, torch.device]] = []
    monkeypatch.setattr("trainers.learner.check_precision", lambda *given: asked.append(given))
    task = tiny_task(tmp_path, precision="bf16")
    ranks = Ranks.alone("cpu")
    Learner(task, ImageProblem(few_digits, task.training, torch.device("cpu")), ranks, Watch(task, ranks))
    assert asked == [("bf16", torch.device("cpu"))]


def test_auto_says_which_precision_was_used(few_digits: ImageData, tmp_path: Path) -> None:
    task = tiny_task(tmp_path, precision="auto", epochs=1)
    result = load_trainer("image_classification").fit(task, few_digits, Ranks.alone("cpu"), Script())
    assert result.facts["precision"] == "fp32"


def test_cpu_multiplies_in_fp32_where_tf32_is_asked_for(few_digits: ImageData, tmp_path: Path) -> None:
    task = tiny_task(tmp_path, precision="tf32", epochs=1)
    result = load_trainer("image_classification").fit(task, few_digits, Ranks.alone("cpu"), Script())
    assert result.facts["precision"] == "fp32"


@pytest.mark.parametrize("used, rounds", [("tf32", True), ("fp32", False), ("bf16", False)])
def test_tf32_is_on_in_tf32_alone_and_settings_are_restored(used: UsedPrecision, rounds: bool) -> None:
    def settings() -> tuple[bool, bool]:
        return torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32

    before = settings()
    with pytest.raises(KeyError), float32_arithmetic(used, torch.device("cuda", 0)):
        assert settings() == (rounds, rounds)
        raise KeyError
    assert settings() == before


def test_scale_of_a_resumed_training_equals_that_of_an_uninterrupted_one(
    monkeypatch: pytest.MonkeyPatch, few_digits: ImageData, tmp_path: Path
) -> None:
    # Usually the scale grows after 2,000 steps; here after two, four steps an epoch.
    monkeypatch.setattr(torch.amp, "GradScaler", partial(torch.amp.GradScaler, growth_interval=2))
    trainer = load_trainer("image_classification")

    def scales(root: Path, epochs: int, resume_from: str | None = None) -> list[float]:
        task = tiny_task(root, {"norm": "none"}, precision="fp16", epochs=4, resume_from=resume_from)
        trainer.fit(task, few_digits, Ranks.alone("cpu"), Script({epochs: Decision.PAUSE}))
        paths = sorted((root / "trial-0").glob("epoch-*.pt"))
        return [read_checkpoint(path).optimization["scaler"]["scale"] for path in paths]

    whole = scales(tmp_path / "whole", epochs=4)
    scales(tmp_path / "parts", epochs=2)
    assert scales(tmp_path / "parts", 4, "trial-0/epoch-0002.pt") == whole
    assert len(set(whole)) > 1
