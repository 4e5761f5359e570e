"""Whatever a mutation changes: inheriting ends well, tells what it has done, and gives values where it says so."""

import math
import zlib

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from search_spaces import catalog
from search_spaces.configuration import Configuration
from search_spaces.errors import InfeasibleArchitectureError
from search_spaces.example_inputs import example_inputs
from search_spaces.inheritance import inherit
from search_spaces.shapes import InputShape, TableShape, TextShape

SHAPES: dict[str, InputShape] = {"tabular": TableShape(numbers=3, categories=(4, 3))}
SHAPES["text_classification"] = TextShape(vocabulary=20, length=6)
IMAGES = (2, 8, 8)
ENTRIES = catalog.available()


def draw(name: str, rng: np.random.Generator) -> Configuration:
    """A configuration with a network, small where the space lets one choose."""
    space = catalog.load(name).SPACE
    while space.refusal(drawn := space.sample(rng)) is not None:
        pass
    small = {"cells": 3, "channels": 4} if name == "darts_cell" else {}
    return drawn.replace(**small)


def mutated(name: str, configuration: Configuration, rng: np.random.Generator) -> Configuration:
    """One or two mutations of the architecture later."""
    space = catalog.load(name).SPACE
    names = space.names("architecture") or None
    child = configuration
    for _ in range(int(rng.integers(1, 3))):
        while space.refusal(changed := space.mutate(child, rng, names)) is not None:
            pass
        child = changed
    return child


def check_children(name: str, children: int) -> None:
    module = catalog.load(name)
    shape = SHAPES.get(module.SPACE.task or "", IMAGES)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    inputs = example_inputs(shape, 2, torch.Generator().manual_seed(1))
    tried = 0
    while tried < children:
        configuration = draw(name, rng)
        changed = mutated(name, configuration, rng)
        try:
            parent, child = (
                module.build_model(module.SPACE.plain(each), shape, 3) for each in (configuration, changed)
            )
        except InfeasibleArchitectureError:
            continue
        check_child(parent, child, inputs)
        tried += 1


def check_child(parent: nn.Module, child: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    theirs = {key: value.clone() for key, value in parent.state_dict().items()}
    found = inherit(child, parent.state_dict(), inputs)
    ours = child.state_dict()
    assert sorted((*found.taken, *found.widened, *found.fresh)) == sorted(ours)
    assert all(torch.equal(ours[key], theirs[key]) for key in found.taken)
    assert all(ours[key].numel() > theirs[key].numel() for key in found.widened)
    assert 0.0 <= found.share <= 1.0
    assert all(torch.equal(value, theirs[key]) for key, value in parent.state_dict().items())
    with torch.no_grad():
        total = float(child.eval()(*inputs).sum())
    assert math.isfinite(total)


@pytest.mark.parametrize("name", ENTRIES)
def test_mutations_inherit(name: str) -> None:
    check_children(name, 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENTRIES)
def test_many_mutations_inherit(name: str) -> None:
    check_children(name, 20)
