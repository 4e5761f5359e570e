"""Residual networks: stages of equal blocks, each of which adds a change to what it is given.

Shapes: N images, C channels, H height, W width, K classes.

Source: He et al. 2015, Deep Residual Learning for Image Recognition, arXiv 1512.03385, table 1. The stride of a
bottleneck is in its 3x3 convolution, as in torchvision's networks, instead of the first 1x1: fewer pixels are passed
over. Each stage after the first halves the map where that can still be halved, and the stem what is large.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

from torch import Tensor, nn

from search_spaces.inheritance import silence
from search_spaces.networks import MapMean
from search_spaces.shapes import ImageShape
from search_spaces.skeleton import AxisStride, Skeleton
from search_spaces.stochastic_depth import StochasticDepth, linear_rule

__all__ = ["BLOCKS", "STEMS", "ResidualBlock", "residual_network"]

BOTTLENECK: Final = 4
"""How many times narrower the 3x3 convolution of a bottleneck is than what goes in and comes out."""

Branch: TypeAlias = Callable[[int, int, AxisStride], tuple[nn.Sequential, int]]
"""(channels in, width of the stage, stride) -> the layers of a block's branch, and its channels out."""
Stem: TypeAlias = Callable[[int, int, Sequence[AxisStride]], nn.Sequential]
"""(image channels, channels out, strides, at least one) -> the first layers."""


class ResidualBlock(nn.Module):
    """Adds a branch to the input, which passes a 1x1 convolution where its shape changes.

    Args:
        channels_in: channels of the input.
        width: channels of the 3x3 convolutions.
        block: how the branch is made, a name of `BLOCKS`.
        stride: of the first 3x3 convolution, and of the 1x1 convolution beside the branch.
        drop: likelihood with which an image goes without the branch while training, in [0, 1).

    Attributes:
        channels_out: channels of the answer.

    Shapes: x_NCHW (N, channels_in, H, W) -> (N, channels_out, ceil(H / vertical stride), ceil(W / horizontal stride)).
    """

    def __init__(
        self, channels_in: int, width: int, block: str, stride: AxisStride = (1, 1), drop: float = 0.0
    ) -> None:
        """Build the branch and, where it is needed, the convolution beside it."""
        super().__init__()
        self.branch, self.channels_out = BLOCKS[block](channels_in, width, stride)
        self.shortcut: nn.Module = nn.Identity()
        if stride != (1, 1) or channels_in != self.channels_out:
            self.shortcut = nn.Sequential(*_conv_norm(channels_in, self.channels_out, 1, stride))
        self.dropped = StochasticDepth(drop)
        self.relu = nn.ReLU()

    def forward(self, x_NCHW: Tensor) -> Tensor:
        """Add the branch."""
        changed: Tensor = self.relu(self.shortcut(x_NCHW) + self.dropped(self.branch(x_NCHW)))
        return changed

    def start_as_identity(self) -> bool:
        """Let the branch add nothing at first; whether the answer is the input then, which is not below 0."""
        return isinstance(self.shortcut, nn.Identity) and silence(self.branch)


def residual_network(
    input_shape: ImageShape,
    num_classes: int,
    *,
    block: str,
    depths: Sequence[int],
    width: int,
    stem: str,
    dropout: float = 0.0,
    stochastic_depth: float = 0.0,
) -> nn.Sequential:
    """Chain stem, stages, mean over the map and a linear head.

    ResNet-18 is `block="basic", depths=(2, 2, 2, 2), width=64, stem="conv7x7"`; ResNet-50 has bottlenecks and depths
    (3, 4, 6, 3).

    Args:
        input_shape: (channels, height, width) of one image.
        num_classes: number of logits K.
        block: a name of `BLOCKS`.
        depths: blocks of each stage, at least 1; one number for each stage.
        width: channels of the 3x3 convolutions in the first stage; every further stage doubles them.
        stem: a name of `STEMS`.
        dropout: share of the head's inputs that is dropped while training, in [0, 1).
        stochastic_depth: `drop` of the last block; it rises linearly to that (`linear_rule`).

    Shapes: x_NCHW (N, *input_shape) -> logits_NK (N, K), unnormalised.
    """
    skeleton = Skeleton.with_reductions(*input_shape[1:], len(depths) - 1)
    drops = iter(linear_rule(sum(depths), stochastic_depth))
    channels, stages = width, []
    for stage, (depth, stride) in enumerate(zip(depths, ((1, 1), *skeleton.reductions), strict=True)):
        blocks = []
        for each in (stride, *[(1, 1)] * (depth - 1)):
            blocks.append(ResidualBlock(channels, width * 2**stage, block, each, next(drops)))
            channels = blocks[-1].channels_out
        stages.append(nn.Sequential(*blocks))
    parts: dict[str, nn.Module] = {
        "stem": STEMS[stem](input_shape[0], width, skeleton.stem),
        "stages": nn.Sequential(*stages),
        "mean": MapMean(),
        "head": nn.Sequential(nn.Dropout(dropout), nn.Linear(channels, num_classes)),
    }
    return nn.Sequential(OrderedDict(parts))


def _conv_norm(channels_in: int, channels_out: int, kernel: int, stride: AxisStride = (1, 1)) -> list[nn.Module]:
    conv = nn.Conv2d(channels_in, channels_out, kernel, stride=stride, padding=kernel // 2, bias=False)
    return [conv, nn.BatchNorm2d(channels_out)]


def _basic(channels_in: int, width: int, stride: AxisStride) -> tuple[nn.Sequential, int]:
    return nn.Sequential(*_conv_norm(channels_in, width, 3, stride), nn.ReLU(), *_conv_norm(width, width, 3)), width


def _bottleneck(channels_in: int, width: int, stride: AxisStride) -> tuple[nn.Sequential, int]:
    narrow = _conv_norm(channels_in, width, 1)
    middle = _conv_norm(width, width, 3, stride)
    wide = _conv_norm(width, BOTTLENECK * width, 1)
    return nn.Sequential(*narrow, nn.ReLU(), *middle, nn.ReLU(), *wide), BOTTLENECK * width


def _conv_stem(kernel: int) -> Stem:
    """One convolution; further halvings are poolings, as in the paper."""

    def build(channels_in: int, channels_out: int, strides: Sequence[AxisStride]) -> nn.Sequential:
        conv = _conv_norm(channels_in, channels_out, kernel, strides[0])
        return nn.Sequential(*conv, nn.ReLU(), *_poolings(strides[1:]))

    return build


def _deep_stem(channels_in: int, channels_out: int, strides: Sequence[AxisStride]) -> nn.Sequential:
    """Three 3x3 convolutions, half as wide at first (He et al. 2018, Bag of Tricks, arXiv 1812.01187, ResNet-C)."""
    half = channels_out // 2
    first, second = _conv_norm(channels_in, half, 3, strides[0]), _conv_norm(half, half, 3)
    third = _conv_norm(half, channels_out, 3)
    return nn.Sequential(*first, nn.ReLU(), *second, nn.ReLU(), *third, nn.ReLU(), *_poolings(strides[1:]))


def _poolings(strides: Sequence[AxisStride]) -> list[nn.Module]:
    return [nn.MaxPool2d(3, stride=stride, padding=1) for stride in strides]


BLOCKS: Final[Mapping[str, Branch]] = MappingProxyType({"basic": _basic, "bottleneck": _bottleneck})
"""Two 3x3 convolutions, or one between two 1x1 that narrow and widen."""
STEMS: Final[Mapping[str, Stem]] = MappingProxyType(
    {"conv3x3": _conv_stem(3), "conv7x7": _conv_stem(7), "deep": _deep_stem}
)
"""What sees the image first."""
