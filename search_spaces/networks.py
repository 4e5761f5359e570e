"""Whole networks: a skeleton that fits the size of the images, filled with equal cells.

Shapes: N images, C channels, H height, W width, K classes.
"""

import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from torch import Tensor, nn

from search_spaces.cells import Cell
from search_spaces.genotype import CellGenotype
from search_spaces.operations import relu_conv_norm

__all__ = ["CellNetwork", "Reduction", "Skeleton"]

AxisStride = tuple[int, int]

LARGEST_FIRST_MAP: Final = 64
"""The stem halves images until the first cells see at most this height and width."""
LARGEST_LAST_MAP: Final = 8
"""Stages are added until the last cells see at most this height and width, as in NAS-Bench-201."""
SMALLEST_LAST_MAP: Final = 2
"""An axis is not halved to less than this."""
LEAST_REDUCTIONS: Final = 1
"""Images that are small from the start are still reduced once, where that fits: width is cheaper on a small map."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skeleton:
    """Where a network halves its feature map, for images of one size.

    Attributes:
        stem: (vertical, horizontal) stride of every convolution of the stem.
        reductions: (vertical, horizontal) stride of every reduction; there is one more stage than reductions.
        map_size: height and width of the last feature map.
    """

    stem: tuple[AxisStride, ...]
    reductions: tuple[AxisStride, ...]
    map_size: tuple[int, int]

    @classmethod
    def fitting(cls, height: int, width: int) -> "Skeleton":
        """Return the skeleton for images of this height and width, in pixels; each axis on its own.

        Digits of 8x8 end at 4x4 after one reduction, 32x32 at 8x8 after two, 224x224 at 7x7 after a stem
        that halves twice and three reductions; 1x1 is never reduced.

        Raises:
            ValueError: an axis has no pixel.
        """
        if height < 1 or width < 1:
            raise ValueError(f"images of {height}x{width} pixels have nothing to see; each axis needs at least 1 pixel")
        size = (height, width)
        stem: list[AxisStride] = []
        while max(size) > LARGEST_FIRST_MAP and (stride := _halving(size, LARGEST_FIRST_MAP)) != (1, 1):
            stem.append(stride)
            size = _strided(size, stride)
        reductions: list[AxisStride] = []
        while True:
            target = SMALLEST_LAST_MAP if len(reductions) < LEAST_REDUCTIONS else LARGEST_LAST_MAP
            if (stride := _halving(size, target)) == (1, 1):
                break
            reductions.append(stride)
            size = _strided(size, stride)
        return cls(stem=tuple(stem) or ((1, 1),), reductions=tuple(reductions), map_size=size)


class Reduction(nn.Module):
    """The residual block between two stages: halves the feature map and changes the number of channels.

    Shapes:
        x_NCHW (N, channels_in, H, W) -> (N, channels_out, ceil(H / vertical stride), ceil(W / horizontal
        stride)).

    Source:
        The ResNet basic block with an average-pooled shortcut that NAS-Bench-201 uses (arXiv:2001.00326,
        figure 1); unlike there an odd size is rounded up in both branches, so that any size fits.
    """

    def __init__(self, channels_in: int, channels_out: int, stride: AxisStride) -> None:
        """Build both branches."""
        super().__init__()
        self.residual = nn.Sequential(
            relu_conv_norm(channels_in, channels_out, 3, stride),
            relu_conv_norm(channels_out, channels_out, 3),
        )
        self.shortcut = nn.Sequential(
            nn.AvgPool2d(stride, stride=stride, ceil_mode=True),
            nn.Conv2d(channels_in, channels_out, 1, bias=False),
        )

    def forward(self, x_NCHW: Tensor) -> Tensor:
        """Add the branches."""
        summed: Tensor = self.residual(x_NCHW) + self.shortcut(x_NCHW)
        return summed


class CellNetwork(nn.Sequential):
    """Classifies images: stem, stages of equal cells joined by reductions, mean over the map, linear head.

    All of it is one chain of layers, which can be cut into pipeline stages between any two of them.

    Args:
        genotype: the cell; dead edges get no weights.
        input_shape: (channels, height, width) of one image.
        num_classes: number of logits K, at least 1.
        channels: channels of the first stage; every reduction doubles them.
        cells_per_stage: cells in each stage.
        dropout: share of the head's inputs that is dropped while training, in [0, 1).

    Shapes:
        x_NCHW (N, *input_shape) float -> logits_NK (N, K), unnormalised.

    Raises:
        InfeasibleArchitectureError: the cell has no path from its input to its output.
        ValueError: a size is not positive.
    """

    def __init__(
        self,
        genotype: CellGenotype,
        input_shape: tuple[int, int, int],
        num_classes: int,
        *,
        channels: int,
        cells_per_stage: int,
        dropout: float = 0.0,
    ) -> None:
        """Fit the skeleton to the images and fill it with cells."""
        _check_positive(
            {
                "image channels": input_shape[0],
                "num_classes": num_classes,
                "channels": channels,
                "cells_per_stage": cells_per_stage,
            }
        )
        skeleton = Skeleton.fitting(*input_shape[1:])
        stem = _stem(input_shape[0], channels, skeleton.stem)
        stages = [nn.Sequential(*(Cell(genotype, channels) for _ in range(cells_per_stage)))]
        for stride in skeleton.reductions:
            reduction = Reduction(channels, 2 * channels, stride)
            channels *= 2
            stages.append(nn.Sequential(reduction, *(Cell(genotype, channels) for _ in range(cells_per_stage))))
        parts: dict[str, nn.Module] = {
            "stem": stem,
            "stages": nn.Sequential(*stages),
            "last_norm": nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU()),
            "mean": MapMean(),
            "head": nn.Sequential(nn.Dropout(dropout), nn.Linear(channels, num_classes)),
        }
        super().__init__(OrderedDict(parts))
        self.skeleton = skeleton


class MapMean(nn.Module):
    """The mean over the feature map; shapes: x_NCHW -> features_NC."""

    def forward(self, x_NCHW: Tensor) -> Tensor:
        """Return the mean of each channel."""
        return x_NCHW.mean(dim=(2, 3))


def _stem(channels_in: int, channels: int, strides: tuple[AxisStride, ...]) -> nn.Sequential:
    # No ReLU before the first convolution: images may have been normalised to negative values.
    first = nn.Conv2d(channels_in, channels, 3, stride=strides[0], padding=1, bias=False)
    further = [relu_conv_norm(channels, channels, 3, stride) for stride in strides[1:]]
    return nn.Sequential(first, nn.BatchNorm2d(channels), *further)


def _halving(size: tuple[int, int], target: int) -> AxisStride:
    """Return 2 for each axis that is above the target and can be halved, otherwise 1."""
    vertical, horizontal = (2 if axis > target and math.ceil(axis / 2) >= SMALLEST_LAST_MAP else 1 for axis in size)
    return vertical, horizontal


def _strided(size: tuple[int, int], stride: AxisStride) -> tuple[int, int]:
    return math.ceil(size[0] / stride[0]), math.ceil(size[1] / stride[1])


def _check_positive(sizes: dict[str, int]) -> None:
    if wrong := [f"{name}={size}" for name, size in sizes.items() if size < 1]:
        raise ValueError(f"cell network: {', '.join(wrong)}; sizes are at least 1")
