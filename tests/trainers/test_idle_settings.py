"""A setting that changes nothing because of another one is refused where it was given."""

from collections.abc import Sequence
from typing import Any

import pytest

from search_spaces.configuration import JsonScalar
from trainers.config import TrainConfig
from trainers.data.spec import DataSpec
from trainers.idle_settings import idle_options, idle_settings


def idle(given: dict[str, Any], **searched: Sequence[JsonScalar]) -> list[str]:
    training = TrainConfig(**given)
    return idle_settings(given, lambda name: searched.get(name, [getattr(training, name)]))


@pytest.mark.parametrize(
    "name, value, switch, works",
    [
        ("focal_gamma", 3.0, "loss", "focal"),
        ("schedule_power", 3.0, "schedule", "polynomial"),
        ("schedule_drops", 4, "schedule", "step"),
        ("schedule_factor", 0.5, "schedule", "step"),
        ("reference_batch_size", 5, "learning_rate_scaling", "linear"),
        ("reference_batch_size", 5, "learning_rate_scaling", "sqrt"),
        ("min_change", 0.1, "patience", 2),
    ],
)
def test_setting_needs_its_switch(name: str, value: Any, switch: str, works: Any) -> None:
    usual = TrainConfig.model_fields[switch].default
    (sentence,) = idle({name: value})
    assert sentence.startswith(f"{name} has no effect with {switch}={usual}; give {switch}=")
    assert idle({name: value, switch: works}) == []
    assert idle({name: value}, **{switch: [usual, works]}) == []
    assert len(idle({name: value}, **{switch: [usual]})) == 1


def test_all_idle_settings_are_told_and_no_default_is() -> None:
    assert len(idle({"focal_gamma": 3.0, "schedule_power": 3.0, "schedule_drops": 4, "reference_batch_size": 5})) == 4
    assert idle({}) == []


def test_options_of_other_data_are_told_once() -> None:
    data = DataSpec(tokens="word", target="nope", ignore=("a",), image_size=16)
    (sentence,) = idle_options(data, ("image_size",), "a data set of images")
    assert sentence == (
        "--target, --tokens, --ignore means nothing for a data set of images, which has --image-size; leave it out"
    )
    assert idle_options(DataSpec(image_size=16), ("image_size",), "a data set of images") == []
    assert idle_options(DataSpec(), (), "nothing") == []
