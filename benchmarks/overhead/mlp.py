"""A multilayer perceptron for the numbers of a table."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from search_spaces.parameters import Integer
from search_spaces.shapes import TableShape
from search_spaces.space import SearchSpace

__all__ = ["SPACE", "build_model"]

SPACE = SearchSpace(
    "mlp", {"width": Integer(low=16, high=512, role="architecture")}, defaults={"width": 128}, task="tabular"
)


class TableNetwork(nn.Sequential):
    def forward(self, numbers_ND: torch.Tensor, categories_NC: torch.Tensor | None = None) -> torch.Tensor:
        answers: torch.Tensor = super().forward(numbers_ND)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        return answers


def build_model(configuration: Mapping[str, Any], input_shape: TableShape, num_outputs: int) -> nn.Module:
    width = configuration["width"]
    return TableNetwork(
        nn.Linear(input_shape.numbers, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
        nn.Linear(width, num_outputs),
    )  # fmt: skip
