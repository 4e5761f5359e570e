"""A single training's parameters: what is given, what the space has for the rest, and what is missing."""

from pathlib import Path
from typing import Any

import pytest

from tests.trainers.custom.own import write
from trainers.config import TrainTask
from trainers.data.spec import DataSpec
from trainers.preparation import InvalidTrainingError, Wish, prepare

SPACE = """
    from search_spaces import Categorical, Float, SearchSpace
    parameters = {
        "optimizer": Categorical(choices=("sgd", "adamw")),
        "momentum": Float(low=0.5, high=0.9, when={"optimizer": "sgd"}),
        "learning_rate": Float(low=0.001, high=0.1),
        "layers": Categorical(choices=(1, 2), role="architecture"),
        "second": Categorical(choices=(4, 8, 16), role="architecture", when={"layers": 2}),
    }
    SPACE = SearchSpace("mine", parameters, defaults=DEFAULTS)
    def build_model(configuration, input_shape, num_classes):
        raise NotImplementedError
    """
DEFAULTS = {"optimizer": "adamw", "learning_rate": 0.01, "layers": 1}


def task_of(folder: Path, defaults: dict[str, Any] | None, **settings: Any) -> TrainTask:
    space = write(folder, "space.py", SPACE.replace("DEFAULTS", repr(defaults)))
    return prepare(Wish(space=str(space), data=DataSpec(), settings=settings, folder=folder / "run")).task


def problems_of(folder: Path, defaults: dict[str, Any] | None, **settings: Any) -> tuple[str, ...]:
    with pytest.raises(InvalidTrainingError) as caught:
        task_of(folder, defaults, **settings)
    return caught.value.problems


def test_what_is_given_for_the_training_alone_is_not_missing(tmp_path: Path) -> None:
    task = task_of(tmp_path, None, optimizer="muon", learning_rate=3, layers=1)
    assert (task.training.optimizer, task.training.learning_rate) == ("muon", 3.0)
    assert (task.configuration["layers"], task.configuration["optimizer"]) == (1, "sgd")
    assert problems_of(tmp_path, None, optimizer="muon") == ("learning_rate is missing", "layers is missing")
    (refused,) = problems_of(tmp_path, None, optimizer="muon", learning_rate="1e400", layers=1)
    assert refused == "learning_rate='1e400' is not allowed: input should be a finite number"


def test_what_depends_on_a_value_for_the_training_alone_is_the_trainings(tmp_path: Path) -> None:
    task = task_of(tmp_path, None, optimizer="muon", momentum=0.6, learning_rate=0.01, layers=1)
    assert (task.training.optimizer, task.training.momentum) == ("muon", 0.6)
    (refused,) = problems_of(tmp_path, None, optimizer="lion", momentum=0.6, learning_rate=0.01, layers=1)
    assert refused.startswith("momentum has no effect with optimizer=lion; give optimizer=sgd, rmsprop or muon")


def test_defaults_go_with_the_values_that_are_given(tmp_path: Path) -> None:
    assert dict(task_of(tmp_path, DEFAULTS).configuration) == DEFAULTS
    brought_in = task_of(tmp_path, DEFAULTS, optimizer="sgd", layers=2)
    assert brought_in.configuration == {**DEFAULTS, "optimizer": "sgd", "momentum": 0.7, "layers": 2, "second": 4}
    assert brought_in.training.momentum == 0.7
    with_more = {**DEFAULTS, "optimizer": "sgd", "momentum": 0.8, "layers": 2, "second": 16}
    taken_out = task_of(tmp_path, with_more, optimizer="adamw", layers=1)
    assert taken_out.configuration == DEFAULTS


def test_value_that_is_given_and_not_there_is_refused(tmp_path: Path) -> None:
    (refused,) = problems_of(tmp_path, DEFAULTS, second=8)
    assert refused == "second=8 is given, but it is there only when layers is 2 (layers is 1); leave it out"


def test_space_may_be_given_whole(tmp_path: Path) -> None:
    text = """
        from search_spaces import Float, SearchSpace
        SPACE = SearchSpace("rates", {"learning_rate": Float(low=0.001, high=0.1)})
        def build_model(configuration, input_shape, num_classes):
            raise NotImplementedError
        """
    wish = Wish(
        space=str(write(tmp_path, "space.py", text)),
        data=DataSpec(),
        settings={"learning_rate": 3},
        folder=tmp_path / "run",
    )
    assert prepare(wish).task.training.learning_rate == 3.0
