"""A search space of one network that normalises batches of images, and of vectors."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Categorical
from search_spaces.space import SearchSpace

if TYPE_CHECKING:
    from torch import nn

__all__ = ["SPACE", "build_model"]

SPACE = SearchSpace(
    "norms",
    {"kind": Categorical(choices=("both", "images", "own"), role="architecture")},
    description="A convolution and two linear maps.",
)


def build_model(
    configuration: Mapping[str, JsonScalar], input_shape: tuple[int, int, int], num_classes: int
) -> "nn.Module":
    import torch
    from torch import nn

    class OwnNorm(nn.BatchNorm2d):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            return super().forward(input) + 1.0

    kind = SPACE.validate(configuration)["kind"]
    return nn.Sequential(
        nn.Sequential(
            nn.Conv2d(input_shape[0], 4, 3, padding=1, bias=False),
            OwnNorm(4) if kind == "own" else nn.BatchNorm2d(4),
            nn.ReLU(),
        ),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(16, 16, bias=False),
        nn.BatchNorm1d(16) if kind == "both" else nn.Identity(),
        nn.ReLU(),
        nn.Linear(16, num_classes),
    )
