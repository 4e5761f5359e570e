"""A search space of one small convolution, with switches for what can go wrong in a network."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Categorical, Float, Integer
from search_spaces.space import SearchSpace

if TYPE_CHECKING:
    from torch import nn

__all__ = ["SPACE", "build_model"]

SPACE = SearchSpace(
    "tiny",
    {
        "width": Integer(low=1, high=64, role="architecture"),
        "norm": Categorical(choices=("none", "batch"), role="architecture"),
        "dropout": Float(low=0.0, high=0.9, role="architecture"),
        "kind": Categorical(
            choices=("sound", "unit_gradient", "unused_weight", "huge", "wrong_shape", "raises_in_training"),
            role="architecture",
        ),
    },
    description="One convolution.",
)


def build_model(
    configuration: Mapping[str, JsonScalar], input_shape: tuple[int, int, int], num_classes: int
) -> "nn.Module":
    import torch
    from torch import nn

    valid = SPACE.validate(configuration)
    width, kind = cast(int, valid["width"]), valid["kind"]
    if kind == "huge":
        torch.empty(2**60)

    class UnitGradient(nn.Module):
        """Always answers class 0; the gradient of its one weight is 1 for every item of class 0."""

        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(()))

        def forward(self, images_NCHW: torch.Tensor) -> torch.Tensor:
            logits_K = torch.stack([torch.zeros_like(self.weight), 2.0 * self.weight])
            return logits_K.expand(len(images_NCHW), num_classes)

    class Convolution(nn.Sequential):
        def forward(self, images_NCHW: torch.Tensor) -> torch.Tensor:
            if kind == "raises_in_training" and self.training:
                raise ValueError("this network cannot be trained")
            logits: torch.Tensor = super().forward(images_NCHW)  # type: ignore[no-untyped-call]  # torch
            return logits

    if kind == "unit_gradient":
        return UnitGradient()
    network = Convolution(
        nn.Conv2d(input_shape[0], width, 3, padding=1),
        nn.BatchNorm2d(width) if valid["norm"] == "batch" else nn.Identity(),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(cast(float, valid["dropout"])),
        nn.Linear(4 * width, num_classes + (kind == "wrong_shape")),
    )
    if kind == "unused_weight":
        network[0].register_parameter("unused", nn.Parameter(torch.zeros(3)))
    return network
