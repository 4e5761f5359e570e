"""What holds for every score: nothing of the network changes, and equal arguments give equal scores."""

import copy
import math
import subprocess
import sys
from typing import cast

import pytest
import torch
from torch import Tensor, nn

from search_spaces import catalog
from search_spaces.example_inputs import example_inputs
from search_spaces.scores import UnknownScoreError, available, explained_score, score
from search_spaces.shapes import ImageShape, TableShape, TextShape

ITEMS = 6
SHAPES: dict[str, ImageShape | TextShape | TableShape] = {
    "image_classification": (3, 8, 8),
    "text_classification": TextShape(length=9, vocabulary=30),
    "tabular": TableShape(numbers=4, categories=(3, 5)),
}
SPACES = [name for name in catalog.available() if catalog.load(name).SPACE.task in SHAPES]

each_score = pytest.mark.parametrize("name", available())


class Noise(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.rand_like(x)


def network() -> nn.Sequential:
    """All that a score might change: statistics, what dropout draws, flags, gradients."""
    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(inplace=True), Noise(), nn.Dropout(0.5), nn.Flatten(),
        nn.Linear(12, 2),
    )  # fmt: skip
    model[6].weight.grad = torch.ones(2, 12)
    model[1].eval()
    return model


def batch() -> tuple[tuple[Tensor, ...], Tensor]:
    generator = torch.Generator().manual_seed(5)
    return (torch.randn(ITEMS, 2, 4, 4, generator=generator),), torch.arange(ITEMS) % 2


def test_scores_are_these() -> None:
    assert available() == ("gradient_norm", "jacob_cov", "naswot", "parameters", "snip", "synflow")


@each_score
def test_nothing_of_the_network_and_the_batch_changes(name: str) -> None:
    model, (inputs, targets) = network(), batch()
    state, flags = copy.deepcopy(model.state_dict()), [module.training for module in model.modules()]
    weights, before = list(model.parameters()), copy.deepcopy((inputs, targets))
    randomness = torch.get_rng_state()
    assert math.isfinite(score(name, model, inputs, targets))
    assert torch.equal(torch.get_rng_state(), randomness)
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())
    assert all(now is then for now, then in zip(model.parameters(), weights, strict=True))
    assert [module.training for module in model.modules()] == flags
    assert [weight.grad is not None for weight in weights] == [False, False, False, False, True, False]
    assert torch.equal(cast(Tensor, model[6].weight.grad), torch.ones(2, 12))
    assert torch.equal(inputs[0], before[0][0]) and torch.equal(targets, before[1])
    assert not inputs[0].requires_grad
    assert not any(module._forward_hooks for module in model.modules())


@each_score
def test_equal_arguments_give_equal_scores_whatever_the_flags_and_generators_are(name: str) -> None:
    model = network()
    scores = {score(name, model.train(), *batch()), score(name, model.eval(), *batch())}
    torch.manual_seed(99)
    with torch.no_grad():
        scores.add(score(name, model, *batch()))
    assert len(scores) == 1


class Failing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        raise KeyError("a fault of the network")


@pytest.mark.parametrize("name", sorted(set(available()) - {"parameters"}))
def test_network_that_fails_gets_its_flags_and_generators_back(name: str) -> None:
    model, randomness = Failing().train(), torch.get_rng_state()
    with pytest.raises(KeyError, match="a fault of the network"):
        score(name, model, (torch.randn(2, 3, generator=torch.Generator()),), torch.tensor([0, 1]))
    assert model.training and model.layer.training
    assert torch.equal(torch.get_rng_state(), randomness)


def test_unknown_score_names_the_nearest() -> None:
    with pytest.raises(
        UnknownScoreError, match="no score 'synflo'; did you mean 'synflow'\\? available: gradient_norm"
    ):
        score("synflo", network(), *batch())


def test_listing_scores_loads_no_torch() -> None:
    code = "import sys, search_spaces.scores as scores; scores.available(); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize("space", SPACES)
def test_default_networks_of_the_catalogue_have_scores(space: str) -> None:
    module = catalog.load(space)
    shape = SHAPES[module.SPACE.task]
    assert module.SPACE.defaults is not None
    torch.manual_seed(0)
    model = module.build_model(module.SPACE.plain(module.SPACE.defaults), shape, 2)
    inputs = example_inputs(shape, ITEMS, torch.Generator().manual_seed(0))
    found = {name: explained_score(name, model, inputs, torch.arange(ITEMS) % 2) for name in available()}
    missing = {name for name, each in found.items() if each.reason is not None}
    assert missing == ({"jacob_cov"} if isinstance(shape, TextShape) else set()), found
