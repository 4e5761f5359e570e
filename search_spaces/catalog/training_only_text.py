"""How the default network of `cnn_text` is trained on texts: the network stays the same."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from search_spaces.catalog import cnn_text
from search_spaces.configuration import JsonScalar
from search_spaces.shapes import TextShape
from search_spaces.space import SearchSpace
from search_spaces.training_parameters import training_parameters, usual_training

if TYPE_CHECKING:
    from torch import nn

__all__ = ["SPACE", "build_model"]

SPACE = SearchSpace(
    "training_only_text",
    training_parameters("text_classification"),
    task="text_classification",
    defaults=usual_training("text_classification", learning_rate=3e-3),
    description="All that can be chosen of a training on texts; the network stays the same.",
)


def build_model(configuration: Mapping[str, JsonScalar], input_shape: TextShape, num_classes: int) -> "nn.Module":
    """Build the network, which is the same for every configuration.

    Args:
        configuration: valid in `SPACE`.
        input_shape: the longest text and the vocabulary.
        num_classes: number of logits.

    Raises:
        InvalidConfigurationError: the configuration does not belong to the space.
    """
    SPACE.validate(configuration)
    network = cnn_text.SPACE.defaults
    assert network is not None
    return cnn_text.build_model(network, input_shape, num_classes)
