"""How the default network of `tabular_mlp` is trained on tables: the network stays the same.

The loss is the usual one of the column that is told: a space for classes alone, or for numbers alone, can choose
it, too (`search_spaces.training_parameters`).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from search_spaces.catalog import tabular_mlp
from search_spaces.configuration import JsonScalar
from search_spaces.shapes import TableShape
from search_spaces.space import SearchSpace
from search_spaces.training_parameters import training_parameters, usual_training

if TYPE_CHECKING:
    from torch import nn

__all__ = ["SPACE", "build_model"]

SPACE = SearchSpace(
    "training_only_table",
    training_parameters("tabular"),
    task="tabular",
    defaults=usual_training("tabular", learning_rate=2e-3),
    description="All that can be chosen of a training on tables, of classes or numbers; the network stays the same.",
)


def build_model(configuration: Mapping[str, JsonScalar], input_shape: TableShape, num_classes: int) -> "nn.Module":
    """Build the network, which is the same for every configuration.

    Args:
        configuration: valid in `SPACE`.
        input_shape: the columns.
        num_classes: number of logits; 1 where a number is told.

    Raises:
        InvalidConfigurationError: the configuration does not belong to the space.
    """
    SPACE.validate(configuration)
    network = tabular_mlp.SPACE.defaults
    assert network is not None
    return tabular_mlp.build_model(network, input_shape, num_classes)
