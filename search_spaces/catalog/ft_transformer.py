"""FT-Transformers: each column of a table is a token, the columns of a row look at each other, and how that is trained.

The ranges suit tables of some thousand rows and some ten columns, on a CPU at their lower end. The work of attention
grows with the square of the number of columns: of a table with more than `MOST_COLUMNS` every network is infeasible.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from search_spaces.configuration import JsonScalar
from search_spaces.errors import InfeasibleArchitectureError
from search_spaces.parameters import Categorical, Float, Integer
from search_spaces.shapes import TableShape
from search_spaces.space import SearchSpace
from search_spaces.usual_training import table_training, usual_table_training

if TYPE_CHECKING:
    from torch import nn

__all__ = ["MOST_COLUMNS", "SPACE", "build_model"]

MOST_COLUMNS: Final = 512
"""Columns that can look at each other: a row of so many is as much work as a picture of 22x22 patches."""

SPACE = SearchSpace(
    "ft_transformer",
    {
        "depth": Integer(low=1, high=6, role="architecture"),
        "heads": Integer(low=1, high=8, role="architecture"),
        "head_width": Categorical(choices=(8, 16, 32), ordered=True, role="architecture"),
        "expansion": Float(low=0.5, high=3.0, step=0.25, role="architecture"),
        "attention_dropout": Float(low=0.0, high=0.5, step=0.05, role="architecture"),
        "hidden_dropout": Float(low=0.0, high=0.5, step=0.05, role="architecture"),
        "residual_dropout": Float(low=0.0, high=0.2, step=0.05, role="architecture"),
        **table_training(highest_learning_rate=1e-2, optimizers=("adam", "adamw")),
    },
    task="tabular",
    defaults={
        "depth": 2,
        "heads": 4,
        "head_width": 16,
        "expansion": 1.25,
        "attention_dropout": 0.0,
        "hidden_dropout": 0.0,
        "residual_dropout": 0.0,
        **usual_table_training(learning_rate=3e-3),
    },
    description="Blocks of attention over the columns of a table's row, and how they are trained.",
)


def build_model(configuration: Mapping[str, JsonScalar], input_shape: TableShape, num_classes: int) -> "nn.Module":
    """Build the network of a configuration.

    Args:
        configuration: valid in `SPACE`.
        input_shape: the columns.
        num_classes: number of logits; 1 where a number is told.

    Raises:
        InvalidConfigurationError: the configuration does not belong to the space.
        InfeasibleArchitectureError: the table has more than `MOST_COLUMNS`.
    """
    from search_spaces.table_transformer import table_transformer_network

    valid = SPACE.validate(configuration)
    columns = input_shape.numbers + len(input_shape.categories)
    if columns > MOST_COLUMNS:
        raise InfeasibleArchitectureError(
            f"each of {columns:,} columns would look at all others, and at most {MOST_COLUMNS:,} can; "
            "search tabular_mlp or tabular_resnet, or leave columns out"
        )
    return table_transformer_network(
        input_shape,
        num_classes,
        depth=cast(int, valid["depth"]),
        heads=cast(int, valid["heads"]),
        head_width=cast(int, valid["head_width"]),
        expansion=cast(float, valid["expansion"]),
        attention_dropout=cast(float, valid["attention_dropout"]),
        hidden_dropout=cast(float, valid["hidden_dropout"]),
        residual_dropout=cast(float, valid["residual_dropout"]),
    )
