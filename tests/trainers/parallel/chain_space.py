"""A search space of one chain of layers, with switches for what a pipeline cannot cut or compute."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Categorical, Float
from search_spaces.space import SearchSpace

if TYPE_CHECKING:
    from torch import nn

__all__ = ["SPACE", "build_model"]

SPACE = SearchSpace(
    "chain",
    {
        "norm": Categorical(choices=("none", "batch"), role="architecture"),
        "dropout": Float(low=0.0, high=0.9, role="architecture"),
        "kind": Categorical(
            choices=("sound", "no_chain", "shared_weight", "one_layer", "frozen_start", "raises_at_the_end"),
            role="architecture",
        ),
    },
    description="Two convolutions and two linear maps.",
)


def build_model(
    configuration: Mapping[str, JsonScalar], input_shape: tuple[int, int, int], num_classes: int
) -> "nn.Module":
    import torch
    from torch import nn

    valid = SPACE.validate(configuration)
    kind = valid["kind"]

    class OwnWay(nn.Sequential):
        def forward(self, images_NCHW: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = super().forward(images_NCHW)  # type: ignore[no-untyped-call]  # torch
            return logits

    class Raising(nn.Module):
        def forward(self, features_NF: torch.Tensor) -> torch.Tensor:
            if self.training and torch.is_grad_enabled():
                raise ValueError("this layer cannot be trained")
            return features_NF

    if kind == "one_layer":
        return nn.Sequential(nn.Flatten(), nn.Linear(input_shape[1] * input_shape[2], num_classes))
    norm = nn.BatchNorm2d if valid["norm"] == "batch" else nn.Identity
    hidden = nn.Linear(16, 16)
    first = nn.Conv2d(input_shape[0], 4, 3, padding=1)
    network = (OwnWay if kind == "no_chain" else nn.Sequential)(
        nn.Sequential(first, norm(4), nn.ReLU()),
        nn.Sequential(nn.Conv2d(4, 4, 3, padding=1, bias=False), norm(4), nn.ReLU()),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(cast(float, valid["dropout"])),
        hidden,
        nn.ReLU(),
        nn.Linear(16, num_classes),
        Raising() if kind == "raises_at_the_end" else nn.Identity(),
    )
    if kind == "shared_weight":
        assert isinstance(first.bias, nn.Parameter)
        hidden.register_parameter("shared", first.bias)
    if kind == "frozen_start":
        first.requires_grad_(False)
    return network
