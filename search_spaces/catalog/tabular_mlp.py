"""Fully connected networks that tell a column of a table from its other columns, and how they are trained.

The ranges suit tables of a hundred to some hundred thousand rows and a CPU: ten thousand rows pass in half a second.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Categorical, Float, Integer
from search_spaces.shapes import TableShape
from search_spaces.space import SearchSpace
from search_spaces.usual_training import table_training, usual_table_training

if TYPE_CHECKING:
    from torch import nn

__all__ = ["SPACE", "build_model"]

SPACE = SearchSpace(
    "tabular_mlp",
    {
        "depth": Integer(low=1, high=5, role="architecture"),
        "width": Integer(low=32, high=512, step=32, role="architecture"),
        "embedding": Integer(low=2, high=16, step=2, role="architecture"),
        "norm": Categorical(choices=("none", "batch", "layer"), role="architecture"),
        "activation": Categorical(choices=("relu", "gelu", "silu"), role="architecture"),
        "dropout": Float(low=0.0, high=0.5, step=0.05, role="architecture"),
        **table_training(highest_learning_rate=3e-2, optimizers=("sgd", "adam", "adamw")),
    },
    task="tabular",
    defaults={
        "depth": 3,
        "width": 256,
        "embedding": 8,
        "norm": "layer",
        "activation": "silu",
        "dropout": 0.05,
        **usual_table_training(learning_rate=2e-3),
    },
    description="Fully connected layers over numbers and categories of a table's row, and how they are trained.",
)


def build_model(configuration: Mapping[str, JsonScalar], input_shape: TableShape, num_classes: int) -> "nn.Module":
    """Build the network of a configuration.

    Args:
        configuration: valid in `SPACE`.
        input_shape: the columns.
        num_classes: number of logits; 1 where a number is told.

    Raises:
        InvalidConfigurationError: the configuration does not belong to the space.
    """
    from search_spaces.table_layers import TableNetwork

    valid = SPACE.validate(configuration)
    return TableNetwork(
        input_shape,
        num_classes,
        depth=cast(int, valid["depth"]),
        width=cast(int, valid["width"]),
        embedding=cast(int, valid["embedding"]),
        norm=cast(str, valid["norm"]),
        activation=cast(str, valid["activation"]),
        dropout=cast(float, valid["dropout"]),
    )
