"""A setting that changes nothing because of another one is refused where it was given."""

from collections.abc import Sequence
from typing import Any, get_args

import pytest
import torch

from search_spaces.configuration import JsonScalar
from trainers.config import OptimizerName, TrainConfig
from trainers.data.spec import DataSpec
from trainers.idle_settings import idle_options, idle_settings
from trainers.optimizers import build_optimizer


def idle(given: dict[str, Any], **searched: Sequence[JsonScalar]) -> list[str]:
    training = TrainConfig(**given)
    return idle_settings(given, lambda name: searched.get(name, [getattr(training, name)]))


@pytest.mark.parametrize(
    "name, value, switch, works",
    [
        ("momentum", 0.5, "optimizer", "sgd"),
        ("momentum", 0.5, "optimizer", "rmsprop"),
        ("momentum", 0.5, "optimizer", "muon"),
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


@pytest.mark.parametrize("name", get_args(OptimizerName))
def test_momentum_is_idle_with_the_optimizers_that_do_not_read_it(name: OptimizerName) -> None:
    def trained(momentum: float) -> torch.Tensor:
        torch.manual_seed(1)
        network = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(3)))
        optimizer = build_optimizer(network, TrainConfig(optimizer=name, momentum=momentum, learning_rate=0.1))
        for _ in range(3):
            optimizer.zero_grad()
            network(torch.ones(2, 3)).square().sum().backward()
            optimizer.step()
        return torch.cat([weight.detach().flatten() for weight in network.parameters()])

    has_effect = not torch.equal(trained(0.5), trained(0.9))
    assert (idle({"momentum": 0.5, "optimizer": name}) == []) == has_effect


def test_options_of_other_data_are_told_once() -> None:
    data = DataSpec(tokens="word", target="nope", ignore=("a",), image_size=16)
    (sentence,) = idle_options(data, ("image_size",), "a data set of images")
    assert sentence == (
        "--target, --tokens, --ignore means nothing for a data set of images, which has --image-size; leave it out"
    )
    assert idle_options(DataSpec(image_size=16), ("image_size",), "a data set of images") == []
    assert idle_options(DataSpec(), (), "nothing") == []
