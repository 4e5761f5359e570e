"""Residual networks for images: how many stages of how many blocks, how wide, of which kind, and how they are trained.

ResNet-18 of the paper is among them. The ranges suit small images that are learned from scratch, on a CPU at their
lower end.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from search_spaces.blocks import repeat
from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Categorical, Float, Integer
from search_spaces.shapes import ImageShape
from search_spaces.space import SearchSpace
from search_spaces.usual_training import image_training, usual_image_training

if TYPE_CHECKING:
    from torch import nn

__all__ = ["SPACE", "build_model"]

SPACE = SearchSpace(
    "resnet",
    {
        "stem": Categorical(choices=("conv3x3", "conv7x7", "deep"), role="architecture"),
        "block": Categorical(choices=("basic", "bottleneck"), role="architecture"),
        "width": Categorical(choices=(8, 16, 32, 64), ordered=True, role="architecture"),
        **repeat(
            "stages", Integer(low=2, high=4), {"depth": Integer(low=1, high=4)}, item="stage", role="architecture"
        ),
        "dropout": Float(low=0.0, high=0.3, step=0.05, role="architecture"),
        "stochastic_depth": Float(low=0.0, high=0.3, step=0.05, role="architecture"),
        **image_training(highest_learning_rate=1e-1, optimizers=("sgd", "adam", "adamw")),
    },
    defaults={
        "stem": "conv3x3",
        "block": "basic",
        "width": 16,
        "stages": 3,
        "stage_1_depth": 1,
        "stage_2_depth": 1,
        "stage_3_depth": 1,
        "dropout": 0.1,
        "stochastic_depth": 0.0,
        **usual_image_training(learning_rate=1e-2),
    },
    description="Stages of residual blocks, their number, depth, width and kind, and how they are trained.",
)


def build_model(configuration: Mapping[str, JsonScalar], input_shape: ImageShape, num_classes: int) -> "nn.Module":
    """Build the network of a configuration; how often it halves its map follows from the images.

    Args:
        configuration: valid in `SPACE`.
        input_shape: (channels, height, width) of one image.
        num_classes: number of logits.

    Raises:
        InvalidConfigurationError: the configuration does not belong to the space.
    """
    from search_spaces.residual_blocks import residual_network

    valid = SPACE.validate(configuration)
    stages = range(1, cast(int, valid["stages"]) + 1)
    return residual_network(
        input_shape,
        num_classes,
        block=cast(str, valid["block"]),
        depths=[cast(int, valid[f"stage_{stage}_depth"]) for stage in stages],
        width=cast(int, valid["width"]),
        stem=cast(str, valid["stem"]),
        dropout=cast(float, valid["dropout"]),
        stochastic_depth=cast(float, valid["stochastic_depth"]),
    )
