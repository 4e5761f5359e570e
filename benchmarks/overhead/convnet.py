"""A small ConvNet for 28x28 images."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from search_spaces.parameters import Integer
from search_spaces.space import SearchSpace

__all__ = ["SPACE", "build_model"]

SPACE = SearchSpace("convnet", {"width": Integer(low=16, high=64, role="architecture")}, defaults={"width": 16})


def build_model(configuration: Mapping[str, Any], input_shape: tuple[int, int, int], num_classes: int) -> nn.Module:
    width = configuration["width"]
    return nn.Sequential(
        nn.Conv2d(input_shape[0], width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(2 * width, 4 * width, 3, padding=1, bias=False), nn.BatchNorm2d(4 * width), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, num_classes),
    )  # fmt: skip
