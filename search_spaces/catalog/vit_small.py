"""Small vision transformers: the size of the patches, depth, heads and width, and how they are trained.

ViT-S/16 is the largest network of the space. The ranges suit small images that are learned from scratch, on a CPU at
their lower end. Which patches fit depends on the images: where they are larger than an image, or so many that comparing
all with all would not end, the configuration is infeasible.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from search_spaces.configuration import JsonScalar
from search_spaces.errors import InfeasibleArchitectureError
from search_spaces.parameters import Categorical, Float, Integer
from search_spaces.shapes import ImageShape
from search_spaces.space import SearchSpace
from search_spaces.usual_training import image_training, usual_image_training

if TYPE_CHECKING:
    from torch import nn

    from search_spaces.vision_transformer import Pooling

__all__ = ["MOST_PATCHES", "SPACE", "build_model"]

MOST_PATCHES = 1024
"""Patches of an image that can be trained: 32x32 pixels one by one, or 256x256 in patches of 8. The work of attention
grows with the square: with 50,176, as many as 224x224 pixels, a step would take minutes."""

SPACE = SearchSpace(
    "vit_small",
    {
        "patch": Categorical(choices=(1, 2, 4, 8, 16), ordered=True, role="architecture"),
        "depth": Integer(low=1, high=12, role="architecture"),
        "heads": Integer(low=1, high=6, role="architecture"),
        "head_width": Categorical(choices=(16, 32, 64), ordered=True, role="architecture"),
        "expansion": Integer(low=1, high=4, role="architecture"),
        "pooling": Categorical(choices=("class_token", "mean"), role="architecture"),
        "dropout": Float(low=0.0, high=0.3, step=0.05, role="architecture"),
        "stochastic_depth": Float(low=0.0, high=0.3, step=0.05, role="architecture"),
        **image_training(highest_learning_rate=1e-2, optimizers=("adam", "adamw")),
    },
    defaults={
        "patch": 2,
        "depth": 4,
        "heads": 4,
        "head_width": 16,
        "expansion": 2,
        "pooling": "mean",
        "dropout": 0.0,
        "stochastic_depth": 0.0,
        **usual_image_training(learning_rate=2e-3),
    },
    description="Blocks of attention over the patches of an image, their width and depth, and how they are trained.",
)


def build_model(configuration: Mapping[str, JsonScalar], input_shape: ImageShape, num_classes: int) -> "nn.Module":
    """Build the network of a configuration.

    Args:
        configuration: valid in `SPACE`.
        input_shape: (channels, height, width) of one image.
        num_classes: number of logits.

    Raises:
        InvalidConfigurationError: the configuration does not belong to the space.
        InfeasibleArchitectureError: a patch is larger than the image, or there are more than `MOST_PATCHES`.
    """
    from search_spaces.vision_transformer import patches_of, vision_transformer

    valid = SPACE.validate(configuration)
    patch = cast(int, valid["patch"])
    rows, columns = patches_of(input_shape, patch)
    if rows * columns > MOST_PATCHES:
        raise InfeasibleArchitectureError(
            f"patches of {patch}x{patch} pixels cut images of {input_shape[1]}x{input_shape[2]} pixels into "
            f"{rows * columns:,} tokens, more than {MOST_PATCHES:,}"
        )
    return vision_transformer(
        input_shape,
        num_classes,
        patch=patch,
        depth=cast(int, valid["depth"]),
        heads=cast(int, valid["heads"]),
        head_width=cast(int, valid["head_width"]),
        expansion=cast(int, valid["expansion"]),
        pooling=cast("Pooling", valid["pooling"]),
        dropout=cast(float, valid["dropout"]),
        stochastic_depth=cast(float, valid["stochastic_depth"]),
    )
