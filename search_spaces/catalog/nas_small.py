"""Small cell networks: the six edges of a NAS-Bench-201 cell, the network's size, and how it is trained.

The ranges suit small images and a CPU: a network of the middle of the space passes 1,000 digits in a fraction
of a second.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from search_spaces.configuration import JsonScalar
from search_spaces.genotype import EDGE_NAMES, OPERATIONS, CellGenotype, canonical_edges, why_no_path
from search_spaces.graph import NetworkGraph, cell_graph
from search_spaces.parameters import Categorical, Float, Integer, Parameter
from search_spaces.space import SearchSpace

if TYPE_CHECKING:
    from torch import nn

__all__ = ["SPACE", "build_model", "graph"]


_EDGES: dict[str, Parameter] = {name: Categorical(choices=OPERATIONS, role="architecture") for name in EDGE_NAMES}

SPACE = SearchSpace(
    "nas_small",
    {
        **_EDGES,
        "channels": Integer(low=8, high=24, step=4, role="architecture"),
        "cells_per_stage": Integer(low=1, high=2, role="architecture"),
        "dropout": Float(low=0.0, high=0.3, step=0.05, role="architecture"),
        "optimizer": Categorical(choices=("sgd", "adam", "adamw")),
        "learning_rate": Float(low=1e-3, high=1e-1, log=True),
        "weight_decay": Float(low=1e-6, high=1e-2, log=True),
        "batch_size": Categorical(choices=(32, 64, 128), ordered=True),
        "label_smoothing": Float(low=0.0, high=0.2, step=0.05),
        "augmentation": Float(low=0.0, high=1.0),
    },
    defaults={
        **CellGenotype.parse("|conv3x3~0|+|skip~0|conv1x1~1|+|skip~0|none~1|conv3x3~2|").to_configuration(),
        "channels": 16,
        "cells_per_stage": 1,
        "dropout": 0.1,
        "optimizer": "adamw",
        "learning_rate": 0.01,
        "weight_decay": 1e-4,
        "batch_size": 64,
        "label_smoothing": 0.05,
        "augmentation": 0.2,
    },
    canonical=canonical_edges,
    canonical_over=EDGE_NAMES,
    refuse=why_no_path,
    description="Cells of four nodes and five operations, their width and depth, and how they are trained.",
)


def build_model(
    configuration: Mapping[str, JsonScalar], input_shape: tuple[int, int, int], num_classes: int
) -> "nn.Module":
    """Build the network of a configuration; only edges on a path from the input to the output get weights.

    Args:
        configuration: valid in `SPACE`.
        input_shape: (channels, height, width) of one image.
        num_classes: number of logits.

    Raises:
        InvalidConfigurationError: the configuration does not belong to the space.
        InfeasibleArchitectureError: the cell has no path from its input to its output.
    """
    from search_spaces.networks import CellNetwork

    valid = SPACE.validate(configuration)
    return CellNetwork(
        CellGenotype.from_configuration(valid),
        input_shape,
        num_classes,
        channels=cast(int, valid["channels"]),
        cells_per_stage=cast(int, valid["cells_per_stage"]),
        dropout=cast(float, valid["dropout"]),
    )


def graph(configuration: Mapping[str, JsonScalar]) -> NetworkGraph:
    """Return the drawing of a configuration's cell, its dead edges included."""
    return cell_graph(CellGenotype.from_configuration(configuration))
