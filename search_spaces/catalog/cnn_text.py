"""Convolutional networks that tell texts apart by short sequences of tokens, and how they are trained.

The ranges suit texts of one to a few hundred tokens and a CPU: ten thousand sentences pass in a few seconds.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Float, Integer
from search_spaces.shapes import TextShape
from search_spaces.space import SearchSpace
from search_spaces.usual_training import text_training, usual_text_training

if TYPE_CHECKING:
    from torch import nn

__all__ = ["SPACE", "build_model"]

SPACE = SearchSpace(
    "cnn_text",
    {
        "width": Integer(low=32, high=256, step=32, role="architecture"),
        "filters": Integer(low=32, high=256, step=32, role="architecture"),
        "smallest_window": Integer(low=1, high=4, role="architecture"),
        "windows": Integer(low=1, high=4, role="architecture"),
        "input_dropout": Float(low=0.0, high=0.6, step=0.05, role="architecture"),
        "dropout": Float(low=0.0, high=0.7, step=0.05, role="architecture"),
        **text_training(highest_learning_rate=3e-2),
    },
    task="text_classification",
    defaults={
        "width": 128,
        "filters": 128,
        "smallest_window": 1,
        "windows": 3,
        "input_dropout": 0.2,
        "dropout": 0.5,
        **usual_text_training(learning_rate=3e-3),
    },
    description="Convolutions of several widths over texts, the strongest response of each, and how they are trained.",
)


def build_model(configuration: Mapping[str, JsonScalar], input_shape: TextShape, num_classes: int) -> "nn.Module":
    """Build the network of a configuration.

    Args:
        configuration: valid in `SPACE`; there are `windows` sorts of filters, and the first sort sees
            `smallest_window` tokens at a time, each next one a token more.
        input_shape: the longest text and the vocabulary.
        num_classes: number of logits.

    Raises:
        InvalidConfigurationError: the configuration does not belong to the space.
    """
    from search_spaces.text_convolutions import text_convolution_network

    valid = SPACE.validate(configuration)
    smallest, windows = cast(int, valid["smallest_window"]), cast(int, valid["windows"])
    return text_convolution_network(
        input_shape,
        num_classes,
        width=cast(int, valid["width"]),
        filters=cast(int, valid["filters"]),
        windows=range(smallest, smallest + windows),
        input_dropout=cast(float, valid["input_dropout"]),
        dropout=cast(float, valid["dropout"]),
    )
