"""What a task cannot do is told before anything is trained: of a single training, and of all that a space offers."""

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from search_spaces.parameters import Categorical, Float, Parameter
from search_spaces.space import SearchSpace
from tests.trainers.custom.own import write
from trainers.config import TrainConfig
from trainers.custom.references import load_own_trainer
from trainers.data.spec import DataSpec
from trainers.settings import check_offers, checked_constants
from trainers.standalone import InvalidTrainingError, train
from trainers.tasks import load_trainer
from trainers.trainer import Trainer

NO_TEACHER = "there is no teacher to learn from"
OWN_NUMBERS = """
    import torch
    from torch.utils.data import TensorDataset
    from search_spaces import Float, SearchSpace
    SPACE = SearchSpace("own", {"learning_rate": Float(low=0.001, high=0.1)})
    def datasets(source):
        numbers = torch.arange(8.0).reshape(8, 1)
        return TensorDataset(numbers, numbers), TensorDataset(numbers, numbers)
    def build_model(configuration):
        return torch.nn.Linear(1, 1)
    """


def offered(trainer: str | Trainer, source: str, constants: dict[str, Any] | None = None, **space: Parameter) -> str:
    """The reason why a space is refused; empty: it is not."""
    trainer = load_trainer(trainer) if isinstance(trainer, str) else trainer
    searched = SearchSpace("mine", space or {"weight_decay": Float(low=0.0, high=0.1)})
    try:
        known = checked_constants(constants or {}, trainer, searched)
        check_offers(known, searched, trainer, DataSpec(source=source))
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", ["tabular", "tabular_classification", "tabular_regression", "text_classification"])
def test_only_images_have_hyperparameters_of_images(name: str) -> None:
    of_images = {"augmentation", "rand_augment", "random_erasing", "mixup", "cutmix", "memory_format"}
    assert of_images <= load_trainer("image_classification").hyperparameters
    kept = {"augmentation"} if name == "text_classification" else set()
    assert of_images & load_trainer(name).hyperparameters == kept


def test_numbers_have_no_hyperparameters_of_classes() -> None:
    of_classes = {"label_smoothing", "class_weights", "focal_gamma", "teacher", "temperature", "distillation"}
    assert not of_classes & load_trainer("tabular_regression").hyperparameters
    assert of_classes <= load_trainer("tabular_classification").hyperparameters


@pytest.mark.parametrize(
    "trainer, source, constants, words",
    [
        ("image_classification", "digits", {"loss": "mse"}, "loss 'mse' is not for classes; give one of auto, cross"),
        ("tabular", "diabetes", {"loss": "focal"}, "loss 'focal' is not for numbers; give one of auto, mse"),
        ("tabular", "diabetes", {"label_smoothing": 0.1}, "label_smoothing=0.1: numbers have no labels to smooth"),
        ("tabular", "diabetes", {"class_weights": "balanced"}, "numbers have no classes; give 'none'"),
        ("tabular", "iris", {"mixup": 0.2}, "no training parameter 'mixup'"),
        ("image_classification", "digits", {"distillation": 0.9}, f"distillation=0.9: {NO_TEACHER}"),
        (
            "image_classification",
            "digits",
            {"teacher": "/nowhere/t.pt"},
            "teacher='/nowhere/t.pt': there is no such file",
        ),
        ("image_classification", "digits", {"focal_gamma": 3}, "focal_gamma has no effect with loss=auto; give loss=f"),
    ],
)
def test_constant_that_the_task_cannot_do_is_refused_once(
    trainer: str, source: str, constants: dict[str, Any], words: str
) -> None:
    reason = offered(trainer, source, constants)
    assert words in reason
    assert "space 'mine'" not in reason
    if "no training parameter" not in words:
        assert ";" not in reason.replace("; give", "").replace(", or", "")


@pytest.mark.parametrize(
    "trainer, source, space, words",
    [
        (
            "image_classification",
            "digits",
            {"loss": Categorical(choices=("focal", "mse"))},
            "space 'mine': loss 'mse' is not for classes",
        ),
        (
            "tabular",
            "diabetes",
            {"label_smoothing": Float(low=0.0, high=0.2)},
            "space 'mine': label_smoothing=0.2: numbers have no labels",
        ),
        ("tabular", "iris", {"temperature": Float(low=1.0, high=2.0)}, f"space 'mine': temperature=1.0: {NO_TEACHER}"),
        ("tabular", "iris", {"momentum": Float(low=0.5, high=1.0)}, "space 'mine': momentum=1.0 is not allowed"),
    ],
)
def test_space_that_offers_what_the_task_cannot_do_is_refused(
    trainer: str, source: str, space: dict[str, Parameter], words: str
) -> None:
    assert offered(trainer, source, {}, **space).startswith(words)


def test_what_the_task_can_do_is_offered(tmp_path: Path) -> None:
    assert offered("tabular", "iris", label_smoothing=Float(low=0.0, high=0.2)) == ""
    assert offered("image_classification", "digits", mixup=Float(low=0.0, high=0.4)) == ""
    assert offered("tabular", "diabetes", loss=Categorical(choices=("mse", "huber"))) == ""
    teacher = tmp_path / "teacher.pt"
    ZipFile(teacher, "w").close()  # what is in it is looked at later
    hot = Float(low=1.0, high=8.0)
    assert offered("tabular", "iris", {"teacher": str(teacher)}, temperature=hot) == ""
    assert offered("tabular", "iris", teacher=Categorical(choices=(None, str(teacher))), temperature=hot) == ""
    assert "there is no such file" in offered("tabular", "iris", teacher=Categorical(choices=(None, "/nowhere/t.pt")))


def test_targets_of_own_datasets_choose_the_losses(tmp_path: Path) -> None:
    own = load_own_trainer(str(write(tmp_path, "own.py", OWN_NUMBERS)))
    assert own is not None
    assert offered(own, "none", {"loss": "huber"}) == ""
    assert "loss 'focal' is not for numbers" in offered(own, "none", {"loss": "focal"})


def test_teacher_at_a_url_is_not_asked_for() -> None:
    training = TrainConfig(teacher="s3://bucket/teacher.pt")
    assert load_trainer("image_classification").mistakes(training, DataSpec()) == []


def test_single_training_is_refused_before_it_reads_its_data(tmp_path: Path) -> None:
    def problems(space: str, source: str, **settings: Any) -> str:
        with pytest.raises(InvalidTrainingError) as caught:
            train(space, source, settings=settings, folder=tmp_path / "run", device="cpu")
        return str(caught.value)

    assert "loss 'mse' is not for classes" in problems("nas_small", "digits", loss="mse")
    assert "there is no such file" in problems("nas_small", "digits", teacher="none.pt")
    assert "numbers have no labels" in problems("tabular_mlp", "diabetes", label_smoothing=0.1)
    assert "fsdp shares a network among ranks, and here one" in problems("nas_small", "digits", parallel="fsdp")
    assert "schedule_drops has no effect" in problems("nas_small", "digits", schedule_drops=4)
    with pytest.raises(InvalidTrainingError, match=r"--tokens means nothing for a data set of images"):
        train("nas_small", DataSpec(tokens="word"), folder=tmp_path / "run", device="cpu")
    with pytest.raises(InvalidTrainingError, match="as many stages as there are ranks, 60"):
        train("nas_small", settings={"parallel": "pipeline"}, folder=tmp_path / "run", device="cpu", ranks=60)
    assert not (tmp_path / "run").exists()
