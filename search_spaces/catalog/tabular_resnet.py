"""Residual networks that tell a column of a table from its other columns, and how they are trained.

The ranges suit tables of a hundred to some hundred thousand rows, and a CPU at their lower end.
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
    "tabular_resnet",
    {
        "depth": Integer(low=1, high=8, role="architecture"),
        "width": Integer(low=32, high=512, step=32, role="architecture"),
        "expansion": Integer(low=1, high=4, role="architecture"),
        "embedding": Integer(low=2, high=16, step=2, role="architecture"),
        "norm": Categorical(choices=("batch", "layer"), role="architecture"),
        "hidden_dropout": Float(low=0.0, high=0.5, step=0.05, role="architecture"),
        "residual_dropout": Float(low=0.0, high=0.5, step=0.05, role="architecture"),
        **table_training(highest_learning_rate=3e-2, optimizers=("sgd", "adam", "adamw")),
    },
    task="tabular",
    defaults={
        "depth": 2,
        "width": 128,
        "expansion": 2,
        "embedding": 8,
        "norm": "batch",
        "hidden_dropout": 0.1,
        "residual_dropout": 0.0,
        **usual_table_training(learning_rate=2e-3),
    },
    description="Residual blocks over numbers and categories of a table's row, and how they are trained.",
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
    from search_spaces.table_residual import table_residual_network

    valid = SPACE.validate(configuration)
    return table_residual_network(
        input_shape,
        num_classes,
        depth=cast(int, valid["depth"]),
        width=cast(int, valid["width"]),
        expansion=cast(int, valid["expansion"]),
        embedding=cast(int, valid["embedding"]),
        norm=cast(str, valid["norm"]),
        hidden_dropout=cast(float, valid["hidden_dropout"]),
        residual_dropout=cast(float, valid["residual_dropout"]),
    )
