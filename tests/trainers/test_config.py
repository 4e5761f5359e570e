from typing import Any

import pytest
from pydantic import ValidationError

from search_spaces.configuration import Configuration, JsonScalar
from tests.trainers.training import tiny_task
from trainers.config import TrainConfig, TrainTask


@pytest.mark.parametrize("path", ["/tmp/x.pt", "../x.pt", "a/../../x.pt", ""])
def test_paths_outside_the_artifacts_root_are_refused(path: str) -> None:
    with pytest.raises(ValidationError, match="relative to artifacts_root"):
        TrainTask(space="s", configuration={}, artifacts_root="/tmp", checkpoint_dir="t", resume_from=path)


def test_configuration_keeps_the_kind_of_every_value() -> None:
    values: dict[str, JsonScalar] = {"a": True, "b": 1, "c": 1.0, "d": "1", "e": None}
    task = TrainTask(space="s", configuration=Configuration(values), artifacts_root="/tmp", checkpoint_dir="t")
    read = TrainTask.model_validate_json(task.model_dump_json())
    for got in (task, read):
        assert [(name, type(value)) for name, value in got.configuration.items()] == [
            (name, type(value)) for name, value in values.items()
        ]


def test_unknown_and_impossible_settings_are_refused() -> None:
    with pytest.raises(ValidationError, match="Extra inputs"):
        TrainConfig.model_validate({"epoch": 3})
    with pytest.raises(ValidationError, match="less than or equal to 1"):
        TrainConfig.model_validate({"augmentation": 1.5})


@pytest.mark.parametrize(
    "name", [name for name, field in TrainConfig.model_fields.items() if field.annotation is float]
)
@pytest.mark.parametrize("value", ["inf", "1e400", "nan", float("inf"), float("nan")])
def test_only_finite_numbers_are_settings(name: str, value: Any) -> None:
    with pytest.raises(ValidationError, match="finite number"):
        TrainConfig.model_validate({name: value})


def test_task_survives_json() -> None:
    from pathlib import Path

    task = tiny_task(Path("/tmp"))
    assert TrainTask.model_validate_json(task.model_dump_json()) == task
