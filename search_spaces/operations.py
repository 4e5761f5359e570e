"""The operations on a cell's edges, as modules: name -> constructor.

Shapes: every operation maps x_NCHW (batch, channels, height, width) to the same height and width, or to half
    of them, rounded up, at stride 2.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from torch import nn

from search_spaces.errors import did_you_mean

__all__ = ["CONSTRUCTORS", "Constructor", "Stride", "build_operation", "relu_conv_norm"]

Stride: TypeAlias = int | tuple[int, int]
"""One step for both axes, or (vertical, horizontal)."""
Constructor: TypeAlias = Callable[[int, int, Stride], nn.Module]
"""(channels in, channels out, stride) -> module."""


def build_operation(name: str, channels_in: int, channels_out: int, stride: Stride = 1) -> nn.Module:
    """Build an operation of a cell.

    Raises:
        ValueError: no operation of that name can be built; `none` is left out of a network, not built.
    """
    if name not in CONSTRUCTORS:
        suggestion = did_you_mean(name, CONSTRUCTORS)
        raise ValueError(f"no operation {name!r} to build;{suggestion} operations: {', '.join(CONSTRUCTORS)}")
    return CONSTRUCTORS[name](channels_in, channels_out, stride)


def relu_conv_norm(channels_in: int, channels_out: int, kernel: int, stride: Stride = 1) -> nn.Sequential:
    """Return ReLU, a bias-free convolution and batch normalisation: kernel^2 * in * out + 2 * out weights."""
    return nn.Sequential(
        nn.ReLU(),
        nn.Conv2d(channels_in, channels_out, kernel, stride=stride, padding=kernel // 2, bias=False),
        nn.BatchNorm2d(channels_out),
    )


def _skip(channels_in: int, channels_out: int, stride: Stride) -> nn.Module:
    if channels_in == channels_out and stride in (1, (1, 1)):
        return nn.Identity()
    return relu_conv_norm(channels_in, channels_out, 1, stride)


def _avg_pool(channels_in: int, channels_out: int, stride: Stride) -> nn.Module:
    # The border is left out of the mean, or pixels near it would fade.
    pool = nn.AvgPool2d(3, stride=stride, padding=1, count_include_pad=False)
    return pool if channels_in == channels_out else nn.Sequential(relu_conv_norm(channels_in, channels_out, 1), pool)


CONSTRUCTORS: Final[Mapping[str, Constructor]] = MappingProxyType(
    {
        "skip": _skip,
        "conv1x1": lambda channels_in, channels_out, stride: relu_conv_norm(channels_in, channels_out, 1, stride),
        "conv3x3": lambda channels_in, channels_out, stride: relu_conv_norm(channels_in, channels_out, 3, stride),
        "avg_pool": _avg_pool,
    }
)
"""Every operation of a cell but `none`."""
