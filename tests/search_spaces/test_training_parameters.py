"""All training parameters are offered to the tasks that take them, and no others."""

from pathlib import Path

import numpy as np
import pytest

from search_spaces import Float, SearchSpace
from search_spaces.training_parameters import TRAINED_TASKS, training_parameters, usual_training
from trainers.config import TrainConfig
from trainers.custom.own_module import OwnModuleWithLoss
from trainers.data.spec import DataSpec
from trainers.loss_choice import OF_CLASSES
from trainers.settings import check_offers
from trainers.tasks import load_trainer

LEFT_OUT = {
    "accumulate", "batch_norm", "compile", "gradient_compression", "loader_workers", "memory_format",  # how it computes
    "learning_rate_scaling", "reference_batch_size",  # the learning rate is searched
    "teacher", "temperature", "distillation",  # need a file
    "patience", "min_change",  # when a search ends a training
}  # fmt: skip
DATA = {"image_classification": "digits", "tabular": "iris", "tabular_classification": "wine"}


def data_of(task: str, folder: Path) -> DataSpec:
    if task == "tabular_regression":
        return DataSpec(source="diabetes")
    if task != "text_classification":
        return DataSpec(source=DATA[task])
    path = folder / "texts.csv"
    path.write_text("text,label\n" + "".join(f"it is {word},{word}\n" for word in ("good", "bad") * 20))
    return DataSpec(source=str(path))


def space_of(task: str) -> SearchSpace:
    return SearchSpace("all_of_it", training_parameters(task), task=task, defaults=usual_training(task))


@pytest.mark.parametrize("task", TRAINED_TASKS)
def test_every_training_parameter_of_a_task_is_searched_or_left_out_on_purpose(task: str) -> None:
    left_out = LEFT_OUT | {
        "tabular": OF_CLASSES | {"loss"},  # what the column says is not known before
        "tabular_regression": OF_CLASSES,
    }.get(task, set())
    assert set(training_parameters(task)) == set(load_trainer(task).hyperparameters) - left_out


def test_training_with_a_loss_of_ones_own_has_what_every_training_has() -> None:
    assert set(training_parameters(None)) == set(OwnModuleWithLoss.hyperparameters) - LEFT_OUT
    assert SearchSpace("own", training_parameters(None), defaults=usual_training(None)).defaults is not None


@pytest.mark.parametrize("task", TRAINED_TASKS)
def test_whatever_is_drawn_can_be_trained_on_the_tasks_data(task: str, tmp_path: Path) -> None:
    space, trainer, data = space_of(task), load_trainer(task), data_of(task, tmp_path)
    check_offers({}, space, trainer, data)
    rng = np.random.default_rng(0)
    for configuration in (space.sample(rng) for _ in range(100)):
        training = TrainConfig.model_validate(dict(configuration))
        assert trainer.mistakes(training, data) == []


@pytest.mark.parametrize(
    ("name", "of", "values"),
    [
        ("momentum", "optimizer", {"sgd", "rmsprop", "muon"}),
        ("schedule_drops", "schedule", {"step"}),
        ("schedule_factor", "schedule", {"step"}),
        ("schedule_power", "schedule", {"polynomial"}),
        ("focal_gamma", "loss", {"focal"}),
    ],
)
def test_what_means_something_for_some_values_only_is_there_with_those(name: str, of: str, values: set[str]) -> None:
    space, rng = space_of("image_classification"), np.random.default_rng(0)
    drawn = [space.sample(rng) for _ in range(300)]
    assert {each[of] for each in drawn if name in each} == values
    assert values.isdisjoint(each[of] for each in drawn if name not in each)


def test_every_optimizer_schedule_and_loss_is_offered() -> None:
    parameters = training_parameters("image_classification") | training_parameters("tabular_regression")
    for name in ("optimizer", "schedule"):
        assert set(parameters[name].values()) == _choices(name)
    losses = {*training_parameters("image_classification")["loss"].values(), *parameters["loss"].values()}
    assert losses == _choices("loss") - {"auto"}


def test_range_may_be_narrowed() -> None:
    narrow = Float(low=1e-3, high=1e-2, log=True)
    space = SearchSpace("mine", training_parameters("tabular") | {"learning_rate": narrow})
    assert space.parameters["learning_rate"] == narrow
    assert tuple(space.parameters) == tuple(training_parameters("tabular"))


def test_unknown_task_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ValueError, match=r"no task 'tabula' .* did you mean 'tabular'\? tasks: image_class.*, or None"):
        training_parameters("tabula")


def _choices(name: str) -> set[str]:
    found: set[str] = set(TrainConfig.model_fields[name].annotation.__args__)  # type: ignore[union-attr]  # a Literal
    return found
