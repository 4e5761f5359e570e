"""Transformer encoders that tell texts apart, and how they are trained.

The ranges suit texts of one to a few hundred tokens that are learned from scratch, on a CPU or a small GPU. Every
width of the space can be shared by every number of heads.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Categorical, Float, Integer
from search_spaces.shapes import TextShape
from search_spaces.space import SearchSpace
from search_spaces.usual_training import text_training, usual_text_training

if TYPE_CHECKING:
    from torch import nn

__all__ = ["SPACE", "build_model"]

SPACE = SearchSpace(
    "transformer_text",
    {
        "depth": Integer(low=1, high=6, role="architecture"),
        "width": Integer(low=32, high=256, step=32, role="architecture"),
        "heads": Categorical(choices=(1, 2, 4, 8), ordered=True, role="architecture"),
        "expansion": Integer(low=1, high=4, role="architecture"),
        "dropout": Float(low=0.0, high=0.5, step=0.05, role="architecture"),
        "stochastic_depth": Float(low=0.0, high=0.3, step=0.05, role="architecture"),
        **text_training(highest_learning_rate=1e-2),
    },
    task="text_classification",
    defaults={
        "depth": 2,
        "width": 96,
        "heads": 4,
        "expansion": 2,
        "dropout": 0.1,
        "stochastic_depth": 0.0,
        **usual_text_training(learning_rate=2e-3),
    },
    description="Blocks of attention over the tokens of a text, their width and depth, and how they are trained.",
)


def build_model(configuration: Mapping[str, JsonScalar], input_shape: TextShape, num_classes: int) -> "nn.Module":
    """Build the network of a configuration.

    Args:
        configuration: valid in `SPACE`.
        input_shape: the longest text and the vocabulary.
        num_classes: number of logits.

    Raises:
        InvalidConfigurationError: the configuration does not belong to the space.
    """
    from search_spaces.text_transformer import text_transformer_network

    valid = SPACE.validate(configuration)
    return text_transformer_network(
        input_shape,
        num_classes,
        depth=cast(int, valid["depth"]),
        width=cast(int, valid["width"]),
        heads=cast(int, valid["heads"]),
        expansion=cast(int, valid["expansion"]),
        dropout=cast(float, valid["dropout"]),
        stochastic_depth=cast(float, valid["stochastic_depth"]),
    )
