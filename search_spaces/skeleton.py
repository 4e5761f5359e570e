"""Where a network for images halves its feature map; arithmetic on sizes, without torch."""

import math
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, TypeAlias

__all__ = ["AxisStride", "Skeleton"]

AxisStride: TypeAlias = tuple[int, int]
"""(vertical, horizontal)."""

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
        stem, size = _stem(height, width)
        reductions: list[AxisStride] = []
        while True:
            target = SMALLEST_LAST_MAP if len(reductions) < LEAST_REDUCTIONS else LARGEST_LAST_MAP
            if (stride := _halving(size, target)) == (1, 1):
                break
            reductions.append(stride)
            size = _strided(size, stride)
        return cls(stem=stem, reductions=tuple(reductions), map_size=size)

    @classmethod
    def with_reductions(cls, height: int, width: int, count: int) -> "Skeleton":
        """Return the skeleton of a network that has a fixed number of reductions, whatever the images.

        The stem is that of `fitting`. An axis too short to be halved keeps its pixels: a reduction then has stride 1
        there, in both axes of an image of 1x1.

        Raises:
            ValueError: an axis has no pixel.
        """
        stem, size = _stem(height, width)
        reductions: list[AxisStride] = []
        for _ in range(count):
            reductions.append(_halving(size, SMALLEST_LAST_MAP))
            size = _strided(size, reductions[-1])
        return cls(stem=stem, reductions=tuple(reductions), map_size=size)

    def stem_sizes(self, height: int, width: int) -> tuple[tuple[int, int], ...]:
        """Return height and width of what each convolution of the stem answers, for images of this size."""
        return _sizes((height, width), self.stem)

    def stage_sizes(self, height: int, width: int) -> tuple[tuple[int, int], ...]:
        """Return height and width of the feature map in each stage, for images of this size."""
        first = self.stem_sizes(height, width)[-1]
        return (first, *_sizes(first, self.reductions))


def _sizes(size: tuple[int, int], strides: tuple[AxisStride, ...]) -> tuple[tuple[int, int], ...]:
    """Return the size after each stride."""
    return tuple(accumulate(strides, _strided, initial=size))[1:]


def _stem(height: int, width: int) -> tuple[tuple[AxisStride, ...], tuple[int, int]]:
    """Return the strides of the stem's convolutions, at least one, and the size of what they leave."""
    if height < 1 or width < 1:
        raise ValueError(f"images of {height}x{width} pixels have nothing to see; each axis needs at least 1 pixel")
    size = (height, width)
    strides: list[AxisStride] = []
    while max(size) > LARGEST_FIRST_MAP and (stride := _halving(size, LARGEST_FIRST_MAP)) != (1, 1):
        strides.append(stride)
        size = _strided(size, stride)
    return tuple(strides) or ((1, 1),), size


def _halving(size: tuple[int, int], target: int) -> AxisStride:
    """Return 2 for each axis that is above the target and can be halved, otherwise 1."""
    vertical, horizontal = (2 if axis > target and math.ceil(axis / 2) >= SMALLEST_LAST_MAP else 1 for axis in size)
    return vertical, horizontal


def _strided(size: tuple[int, int], stride: AxisStride) -> tuple[int, int]:
    return math.ceil(size[0] / stride[0]), math.ceil(size[1] / stride[1])
