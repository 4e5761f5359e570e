"""What the tests of spaces for images have in common."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from search_spaces import InfeasibleArchitectureError
from search_spaces.catalog import SpaceModule
from search_spaces.configuration import JsonScalar
from search_spaces.shapes import ImageShape
from trainers.parallel.stages import chain_of

__all__ = ["DRAWS", "IMAGENET", "SHAPES", "build", "chained", "configuration", "draws_that_learn"]

IMAGENET = (3, 224, 224)
SHAPES: tuple[ImageShape, ...] = ((1, 8, 8), (1, 28, 28), (3, 32, 32), (3, 2, 128), (2, 5, 3), (1, 1, 1))
DRAWS = 200


def configuration(space: SpaceModule, **values: JsonScalar) -> dict[str, JsonScalar]:
    """Return the defaults with some values changed."""
    assert space.SPACE.defaults is not None
    return {**space.SPACE.defaults, **values}


def build(space: SpaceModule, shape: ImageShape, values: Mapping[str, JsonScalar], num_classes: int = 3) -> nn.Module:
    """Build a network with known weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return space.build_model(values, shape, num_classes)


def chained(network: nn.Module, images_NCHW: torch.Tensor) -> torch.Tensor:
    """Pass images through the layers of a chain, one after the other, as pipeline stages do."""
    answers = images_NCHW
    for layer in chain_of(network):
        answers = layer.module(answers)
    return answers


def draws_that_learn(space: SpaceModule, shape: ImageShape) -> int:
    """Build random configurations, send a batch forward and backward, and return how many could be built.

    Each one answers with finite numbers, and each of its weights has a gradient.
    """
    rng, built = np.random.default_rng(11), 0
    for _ in range(DRAWS):
        values = space.SPACE.sample(rng)
        try:
            network = space.build_model(values, shape, 3)
        except InfeasibleArchitectureError:
            continue
        built += 1
        logits_NK = network(torch.rand(2, *shape))
        logits_NK.square().mean().backward()
        assert logits_NK.shape == (2, 3) and torch.isfinite(logits_NK).all(), values
        assert all(weight.grad is not None for weight in network.parameters()), values
    return built
