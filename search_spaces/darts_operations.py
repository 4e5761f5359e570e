"""The operations of DARTS cells as modules, with the layers of the paper's code: name -> constructor.

Shapes: every operation maps x_NCHW (batch, channels, height, width) to the same, with each axis divided by its stride
    and rounded up.

Source: Liu, Simonyan and Yang 2019, arXiv:1806.09055, section 3.1.1: ReLU, convolution, normalisation; a separable
    convolution is applied twice. Unlike there any size is reduced, an odd one after a row or column of zeros.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from search_spaces.operations import relu_conv_norm
from search_spaces.skeleton import AxisStride

__all__ = ["CONSTRUCTORS", "Constructor", "FactorizedReduction", "projection"]

Constructor: TypeAlias = Callable[[int, AxisStride], nn.Module]
"""(channels, stride) -> module."""


class FactorizedReduction(nn.Module):
    """Halves the feature map by two 1x1 convolutions, of which one looks at the pixels between those of the other.

    Shapes:
        x_NCHW (N, channels_in, H, W) -> (N, channels_out, ceil(H / vertical), ceil(W / horizontal)).

    Args:
        channels_in: of what is read.
        channels_out: half of them from each convolution.
        stride: (vertical, horizontal), each 1 or 2.
    """

    def __init__(self, channels_in: int, channels_out: int, stride: AxisStride) -> None:
        """Build both convolutions."""
        super().__init__()
        half = channels_out // 2
        self.stride = stride
        self.first = nn.Conv2d(channels_in, half, 1, stride=stride, bias=False)
        self.second = nn.Conv2d(channels_in, channels_out - half, 1, stride=stride, bias=False)
        self.norm = nn.BatchNorm2d(channels_out)

    def forward(self, x_NCHW: Tensor) -> Tensor:
        """Put the answers of both convolutions one behind the other."""
        x_NCHW = torch.relu(x_NCHW)
        vertical, horizontal = self.stride
        missing = (-x_NCHW.shape[3] % horizontal, -x_NCHW.shape[2] % vertical)
        x_NCHW = functional.pad(x_NCHW, (0, missing[0], 0, missing[1]))
        between_NCHW = x_NCHW[:, :, vertical - 1 :, horizontal - 1 :]
        joined: Tensor = self.norm(torch.cat([self.first(x_NCHW), self.second(between_NCHW)], dim=1))
        return joined


def projection(channels_in: int, channels_out: int, stride: AxisStride) -> nn.Module:
    """Return what brings a feature map to a number of channels: a 1x1 convolution, or one that reduces, too."""
    if stride == (1, 1):
        return relu_conv_norm(channels_in, channels_out, 1)
    return FactorizedReduction(channels_in, channels_out, stride)


def _skip(channels: int, stride: AxisStride) -> nn.Module:
    return nn.Identity() if stride == (1, 1) else FactorizedReduction(channels, channels, stride)


def _separable(kernel: int) -> Constructor:
    return lambda channels, stride: nn.Sequential(
        *_depthwise(channels, kernel, stride), *_depthwise(channels, kernel, (1, 1))
    )


def _dilated(kernel: int) -> Constructor:
    return lambda channels, stride: nn.Sequential(*_depthwise(channels, kernel, stride, dilation=2))


def _depthwise(channels: int, kernel: int, stride: AxisStride, dilation: int = 1) -> list[nn.Module]:
    """A convolution of each channel, then one that mixes them: (kernel^2 + channels + 2) * channels weights."""
    padding = dilation * (kernel // 2)
    return [
        nn.ReLU(),
        nn.Conv2d(channels, channels, kernel, stride, padding=padding, dilation=dilation, groups=channels, bias=False),
        nn.Conv2d(channels, channels, 1, bias=False),
        nn.BatchNorm2d(channels),
    ]


CONSTRUCTORS: Final[Mapping[str, Constructor]] = MappingProxyType(
    {
        "skip": _skip,
        "max_pool_3x3": lambda _, stride: nn.MaxPool2d(3, stride, padding=1),
        "avg_pool_3x3": lambda _, stride: nn.AvgPool2d(3, stride, padding=1, count_include_pad=False),
        "sep_conv_3x3": _separable(3),
        "sep_conv_5x5": _separable(5),
        "dil_conv_3x3": _dilated(3),
        "dil_conv_5x5": _dilated(5),
    }
)
"""Every operation of a DARTS cell."""
