"""How the default network of `nas_small` is trained on images: the network stays the same.

For a network of one's own, write a space with `search_spaces.training_parameters`, as `examples/training_only.py` does.
The same for texts is `training_only_text`, for tables `training_only_table`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from search_spaces.catalog import nas_small
from search_spaces.configuration import JsonScalar
from search_spaces.shapes import ImageShape
from search_spaces.space import SearchSpace
from search_spaces.training_parameters import training_parameters, usual_training

if TYPE_CHECKING:
    from torch import nn

__all__ = ["SPACE", "build_model"]

SPACE = SearchSpace(
    "training_only",
    training_parameters("image_classification"),
    task="image_classification",
    defaults=usual_training("image_classification", learning_rate=1e-2),
    description="All that can be chosen of a training on images; the network stays the same.",
)


def build_model(configuration: Mapping[str, JsonScalar], input_shape: ImageShape, num_classes: int) -> "nn.Module":
    """Build the network, which is the same for every configuration.

    Args:
        configuration: valid in `SPACE`.
        input_shape: (channels, height, width) of one image.
        num_classes: number of logits.

    Raises:
        InvalidConfigurationError: the configuration does not belong to the space.
    """
    SPACE.validate(configuration)
    network = nas_small.SPACE.defaults
    assert network is not None
    return nas_small.build_model(network, input_shape, num_classes)
