"""Networks of DARTS cells: a stem, cells of two kinds, the mean over the map, a linear head.

Shapes: N images, C channels, H height, W width, K classes.
"""

from collections import OrderedDict

import torch
from torch import Tensor, nn

from search_spaces.darts_genotype import INPUTS, NODES, DartsCell, DartsGenotype
from search_spaces.darts_operations import CONSTRUCTORS, projection
from search_spaces.networks import MapMean, image_stem
from search_spaces.shapes import ImageShape
from search_spaces.skeleton import AxisStride, Skeleton
from search_spaces.stochastic_depth import drop_branches

__all__ = ["BuiltCell", "CellSequence", "darts_network"]

STEM_CHANNELS = 3
"""Channels of the stem, as a multiple of those of the first cells (in the paper's code)."""
REDUCTIONS = 2
"""Cells that halve the feature map, after one and two thirds of all (section 3.1.1)."""


def darts_network(
    genotype: DartsGenotype,
    input_shape: ImageShape,
    num_classes: int,
    *,
    channels: int,
    cells: int,
    drop_path: float = 0.0,
) -> nn.Sequential:
    """Return a network that classifies images; the auxiliary head that the paper trains with is left out.

    Images above 64 pixels are halved by the stem until they are not, unlike in the paper, whose network for 224 pixels
    has another stem. An axis that is too short is not halved by the cells.

    Args:
        genotype: both kinds of cells.
        input_shape: (channels, height, width) of one image.
        num_classes: number of logits K.
        channels: of a node in the first cells, even; each reduction doubles them.
        cells: of both kinds together, at least 3, so that there is one that does not reduce.
        drop_path: share of the operations' answers that an item goes without while training, in [0, 1).

    Shapes:
        x_NCHW (N, *input_shape) float -> logits_NK (N, K), unnormalised.

    Raises:
        ValueError: a size is too small, or the channels are odd.
    """
    sizes = {"image channels": (input_shape[0], 1), "num_classes": (num_classes, 1), "cells": (cells, 3)}
    wrong = [f"{name}={size}; at least {least}" for name, (size, least) in sizes.items() if size < least]
    if channels < INPUTS or channels % 2:
        wrong.append(f"channels={channels}; give an even number, at least 2")
    if wrong:
        raise ValueError(f"DARTS network: {', '.join(wrong)}")
    skeleton = Skeleton.with_reductions(*input_shape[1:], REDUCTIONS)
    body = CellSequence(genotype, STEM_CHANNELS * channels, channels, cells, skeleton.reductions, drop_path)
    parts: dict[str, nn.Module] = {
        "stem": image_stem(input_shape[0], STEM_CHANNELS * channels, skeleton.stem),
        "cells": body,
        "mean": MapMean(),
        "head": nn.Linear(body.channels_out, num_classes),
    }
    return nn.Sequential(OrderedDict(parts))


class BuiltCell(nn.Module):
    """One cell; all its parts are used, since its answer has all of its nodes.

    Args:
        cell: what its nodes read, and how.
        channels_in: of the answers of the cell before the last, and of the last.
        channels: of each node.
        stride: of the operations on both inputs.
        earlier_stride: by how much the answer of the cell before the last is larger than that of the last one.
        drop_path: share of the operations' answers that an item goes without while training.

    Shapes:
        before_NCHW, last_NCHW -> (N, 4 * channels, ceil(H / vertical), ceil(W / horizontal)), H and W of `last_NCHW`.
    """

    def __init__(
        self,
        cell: DartsCell,
        channels_in: tuple[int, int],
        channels: int,
        *,
        stride: AxisStride,
        earlier_stride: AxisStride,
        drop_path: float,
    ) -> None:
        """Build the operations; their weights are named `operations.2_0`, ... after the node and its source."""
        super().__init__()
        self.cell = cell
        self.drop_path = drop_path
        self.inputs = nn.ModuleList(
            [projection(channels_in[0], channels, earlier_stride), projection(channels_in[1], channels, (1, 1))]
        )
        self.operations = nn.ModuleDict(
            {
                f"{number}_{source}": CONSTRUCTORS[operation](channels, stride if source < INPUTS else (1, 1))
                for number, node in zip(NODES, cell.nodes, strict=True)
                for source, operation in zip(node.sources, node.operations, strict=True)
            }
        )

    def forward(self, before_NCHW: Tensor, last_NCHW: Tensor) -> Tensor:
        """Pass the nodes in order and put them one behind the other."""
        nodes = [self.inputs[0](before_NCHW), self.inputs[1](last_NCHW)]
        for number, node in zip(NODES, self.cell.nodes, strict=True):
            first, second = (self._arriving(nodes[source], f"{number}_{source}") for source in node.sources)
            nodes.append(first + second)
        return torch.cat(nodes[INPUTS:], dim=1)

    def _arriving(self, source_NCHW: Tensor, name: str) -> Tensor:
        operation = self.operations[name]
        answer_NCHW: Tensor = operation(source_NCHW)
        if not self.training or isinstance(operation, nn.Identity):
            return answer_NCHW
        return drop_branches(answer_NCHW, self.drop_path)


class CellSequence(nn.Module):
    """All cells; each reads the answers of the two before it, so no pipeline can be cut within.

    Args:
        genotype: both kinds of cells.
        channels_in: of what the stem answers.
        channels: of a node in the first cells.
        cells: how many there are.
        reductions: strides of the reducing cells, which are spread evenly.
        drop_path: share of the operations' answers that an item goes without while training.

    Attributes:
        channels_out: of the answer.
    """

    def __init__(
        self,
        genotype: DartsGenotype,
        channels_in: int,
        channels: int,
        cells: int,
        reductions: tuple[AxisStride, ...],
        drop_path: float,
    ) -> None:
        """Build the cells."""
        super().__init__()
        places = {(number + 1) * cells // (len(reductions) + 1): step for number, step in enumerate(reductions)}
        self.cells = nn.ModuleList()
        read, earlier_stride = (channels_in, channels_in), (1, 1)
        for place in range(cells):
            stride = places.get(place, (1, 1))
            channels *= 2 if place in places else 1
            cell = genotype.reduction if place in places else genotype.normal
            self.cells.append(
                BuiltCell(cell, read, channels, stride=stride, earlier_stride=earlier_stride, drop_path=drop_path)
            )
            read, earlier_stride = (read[1], len(NODES) * channels), stride
        self.channels_out = read[1]

    def forward(self, x_NCHW: Tensor) -> Tensor:
        """Pass the cells; the first one reads the stem's answer twice."""
        before_NCHW, last_NCHW = x_NCHW, x_NCHW
        for cell in self.cells:
            before_NCHW, last_NCHW = last_NCHW, cell(before_NCHW, last_NCHW)
        return last_NCHW
