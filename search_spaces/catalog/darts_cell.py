"""DARTS: a normal and a reduction cell of four nodes, the network's size, and how it is trained.

The lower ends suit small images and a CPU, the upper ones are the paper's network for CIFAR-10: 36 channels, 20 cells.

Source: Liu, Simonyan and Yang 2019, DARTS: Differentiable Architecture Search, arXiv:1806.09055. Deviations: the
    auxiliary head is left out, and `drop_path` is the same in all epochs instead of rising to 0.2.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast, get_args

from search_spaces.configuration import JsonScalar
from search_spaces.darts_counts import number_of_cells, number_of_different_cells
from search_spaces.darts_genotype import (
    INPUTS,
    NODES,
    OPERATIONS,
    CellKind,
    DartsGenotype,
    canonical_cells,
    source_pairs,
)
from search_spaces.darts_text import parse_genotype
from search_spaces.graph import NetworkGraph, darts_graph
from search_spaces.parameters import Categorical, Float, Integer, Parameter
from search_spaces.shapes import ImageShape
from search_spaces.space import SearchSpace

if TYPE_CHECKING:
    from torch import nn

__all__ = ["SPACE", "build_model", "facts", "graph"]


def _cell(kind: CellKind) -> dict[str, Parameter]:
    parameters: dict[str, Parameter] = {}
    for node in NODES:
        if node > INPUTS:  # the first one reads both inputs
            parameters[f"{kind}_{node}_sources"] = Categorical(choices=source_pairs(node), role="architecture")
        for operation in ("first", "second"):
            parameters[f"{kind}_{node}_{operation}"] = Categorical(choices=OPERATIONS, role="architecture")
    return parameters


_CELLS = {name: parameter for kind in get_args(CellKind) for name, parameter in _cell(kind).items()}
# The result of the second-order search, the code's DARTS_V2 (figures 4 and 5).
_PUBLISHED = parse_genotype(
    "Genotype(normal=[('sep_conv_3x3', 0), ('sep_conv_3x3', 1), ('sep_conv_3x3', 0), ('sep_conv_3x3', 1),"
    " ('sep_conv_3x3', 1), ('skip_connect', 0), ('skip_connect', 0), ('dil_conv_3x3', 2)],"
    " reduce=[('max_pool_3x3', 0), ('max_pool_3x3', 1), ('skip_connect', 2), ('max_pool_3x3', 1),"
    " ('max_pool_3x3', 0), ('skip_connect', 2), ('skip_connect', 2), ('max_pool_3x3', 1)])"
)

SPACE = SearchSpace(
    "darts_cell",
    {
        **_CELLS,
        "channels": Integer(low=4, high=36, step=4, role="architecture"),
        "cells": Integer(low=3, high=20, log=True, role="architecture"),
        "drop_path": Float(low=0.0, high=0.3, step=0.05, role="architecture"),
        "optimizer": Categorical(choices=("sgd", "adam", "adamw")),
        "learning_rate": Float(low=1e-3, high=1e-1, log=True),
        "weight_decay": Float(low=1e-6, high=1e-2, log=True),
        "batch_size": Categorical(choices=(32, 64, 96, 128), ordered=True),
        "label_smoothing": Float(low=0.0, high=0.2, step=0.05),
        "augmentation": Float(low=0.0, high=1.0),
    },
    defaults={
        **_PUBLISHED.to_configuration(),
        "channels": 8,
        "cells": 5,
        "drop_path": 0.0,
        "optimizer": "adamw",
        "learning_rate": 0.01,
        "weight_decay": 3e-4,
        "batch_size": 64,
        "label_smoothing": 0.0,
        "augmentation": 0.2,
    },
    canonical=canonical_cells,
    canonical_over=tuple(_CELLS),
    description="Normal and reduction cells of DARTS, their width and number, and how they are trained.",
)


def build_model(configuration: Mapping[str, JsonScalar], input_shape: ImageShape, num_classes: int) -> "nn.Module":
    """Build the network of a configuration.

    Args:
        configuration: valid in `SPACE`.
        input_shape: (channels, height, width) of one image.
        num_classes: number of logits.

    Raises:
        InvalidConfigurationError: the configuration does not belong to the space.
    """
    from search_spaces.darts_network import darts_network

    valid = SPACE.validate(configuration)
    return darts_network(
        DartsGenotype.from_configuration(valid),
        input_shape,
        num_classes,
        channels=cast(int, valid["channels"]),
        cells=cast(int, valid["cells"]),
        drop_path=cast(float, valid["drop_path"]),
    )


def graph(configuration: Mapping[str, JsonScalar]) -> NetworkGraph:
    """Return the drawing of both cells, the normal one first."""
    return darts_graph(DartsGenotype.from_configuration(configuration))


def facts() -> Mapping[str, int]:
    """Return how many cells of one kind there are, and how many differ in more than the order of their nodes."""
    return {"cells_of_one_kind": number_of_cells(), "different_cells_of_one_kind": number_of_different_cells()}
