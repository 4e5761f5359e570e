"""Networks of inverted residuals: blocks that are narrow outside and wide inside, where each channel is filtered alone.

Shapes: N images, C channels, H height, W width, K classes.

Source: Sandler et al. 2018, MobileNetV2, arXiv 1801.04381, table 1 and figure 4; squeeze-and-excitation and hard-swish:
Howard et al. 2019, MobileNetV3, arXiv 1905.02244, sections 4 and 5.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from torch import Tensor, nn

from search_spaces.inheritance import silence
from search_spaces.networks import MapMean
from search_spaces.shapes import ImageShape
from search_spaces.skeleton import AxisStride

__all__ = ["ACTIVATIONS", "InvertedResidual", "SqueezeExcite", "Stage", "inverted_residual_network", "multiple_of_8"]

ACTIVATIONS: Final[Mapping[str, Callable[[], nn.Module]]] = MappingProxyType(
    {"relu6": nn.ReLU6, "hard_swish": nn.Hardswish}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Equal blocks; the first one may halve the map and change the number of channels.

    Attributes:
        width: channels between the blocks.
        depth: number of blocks, at least 1.
        kernel: height and width of the kernels, odd.
        expansion: how many times wider a block is inside than its input; 1: it is not widened.
        squeeze_excite: whether each block weighs its channels.
        stride: (vertical, horizontal) stride of the first block.
    """

    width: int
    depth: int
    kernel: int = 3
    expansion: int = 6
    squeeze_excite: bool = False
    stride: AxisStride = (1, 1)


class SqueezeExcite(nn.Module):
    """Weighs each channel by what all channels have seen on the whole map.

    Args:
        channels: C.

    Shapes: x_NCHW -> the same.

    Source: Hu et al. 2018, arXiv 1709.01507; a quarter of the channels and the hard sigmoid are MobileNetV3's.
    """

    def __init__(self, channels: int) -> None:
        """Build both layers."""
        super().__init__()
        squeezed = multiple_of_8(channels / 4)
        self.weigh = nn.Sequential(
            nn.Conv2d(channels, squeezed, 1), nn.ReLU(), nn.Conv2d(squeezed, channels, 1), nn.Hardsigmoid()
        )

    def forward(self, x_NCHW: Tensor) -> Tensor:
        """Multiply each channel by its weight, in [0, 1]."""
        weighed: Tensor = x_NCHW * self.weigh(x_NCHW.mean(dim=(2, 3), keepdim=True))
        return weighed


class InvertedResidual(nn.Module):
    """Widens the input, filters each channel alone, and narrows it; the input is added where shapes are equal.

    Args:
        channels_in: channels of the input.
        channels_out: channels of the answer.
        hidden: channels inside; equal to `channels_in`: nothing is widened.
        kernel: height and width of the kernel, odd.
        stride: (vertical, horizontal).
        squeeze_excite: whether the channels inside are weighed.
        activation: a name of `ACTIVATIONS`.

    Shapes: x_NCHW (N, channels_in, H, W) -> (N, channels_out, ceil(H / vertical stride), ceil(W / horizontal stride)).
    """

    def __init__(
        self,
        channels_in: int,
        channels_out: int,
        hidden: int,
        *,
        kernel: int = 3,
        stride: AxisStride = (1, 1),
        squeeze_excite: bool = False,
        activation: str = "relu6",
    ) -> None:
        """Build the layers in the order in which they are called."""
        super().__init__()
        self.adds_input = stride == (1, 1) and channels_in == channels_out
        widen = [] if hidden == channels_in else conv_norm_act(channels_in, hidden, 1, activation=activation)
        filter_each = conv_norm_act(hidden, hidden, kernel, stride, groups=hidden, activation=activation)
        weigh = [SqueezeExcite(hidden)] if squeeze_excite else []
        narrow = [nn.Conv2d(hidden, channels_out, 1, bias=False), nn.BatchNorm2d(channels_out)]
        self.branch = nn.Sequential(*widen, *filter_each, *weigh, *narrow)

    def forward(self, x_NCHW: Tensor) -> Tensor:
        """Change the input."""
        changed: Tensor = self.branch(x_NCHW)
        return x_NCHW + changed if self.adds_input else changed

    def start_as_identity(self) -> bool:
        """Let the branch add nothing at first; whether the answer is the input then."""
        return self.adds_input and silence(self.branch)


def inverted_residual_network(
    input_shape: ImageShape,
    num_classes: int,
    stages: Sequence[Stage],
    *,
    stem_width: int,
    stem_strides: Sequence[AxisStride],
    last_width: int,
    activation: str = "relu6",
    dropout: float = 0.0,
) -> nn.Sequential:
    """Chain stem, stages, a last widening, mean over the map and a linear head.

    Args:
        input_shape: (channels, height, width) of one image.
        num_classes: number of logits K.
        stages: at least one.
        stem_width: channels of the stem.
        stem_strides: stride of each 3x3 convolution of the stem, at least one.
        last_width: channels that the head reads.
        activation: a name of `ACTIVATIONS`.
        dropout: share of the head's inputs that is dropped while training, in [0, 1).

    Shapes: x_NCHW (N, *input_shape) -> logits_NK (N, K), unnormalised.
    """
    channels, stem = input_shape[0], []
    for stride in stem_strides:
        stem.append(nn.Sequential(*conv_norm_act(channels, stem_width, 3, stride, activation=activation)))
        channels = stem_width
    built = []
    for stage in stages:
        built.append(_stage(stage, channels, activation))
        channels = stage.width
    parts: dict[str, nn.Module] = {
        "stem": nn.Sequential(*stem),
        "stages": nn.Sequential(*built),
        "widening": nn.Sequential(*conv_norm_act(channels, last_width, 1, activation=activation)),
        "mean": MapMean(),
        "head": nn.Sequential(nn.Dropout(dropout), nn.Linear(last_width, num_classes)),
    }
    return nn.Sequential(OrderedDict(parts))


def conv_norm_act(
    channels_in: int,
    channels_out: int,
    kernel: int,
    stride: AxisStride = (1, 1),
    *,
    groups: int = 1,
    activation: str,
) -> list[nn.Module]:
    """Return a bias-free convolution, batch normalisation and an activation; stride 1 keeps height and width."""
    conv = nn.Conv2d(channels_in, channels_out, kernel, stride=stride, padding=kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(channels_out), ACTIVATIONS[activation]()]


def multiple_of_8(channels: float) -> int:
    """Return the nearest multiple of 8 that is at least 8 and not below nine tenths of a number of channels."""
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded if rounded >= 0.9 * channels else rounded + 8


def _stage(stage: Stage, channels_in: int, activation: str) -> nn.Sequential:
    def block(channels: int, stride: AxisStride) -> InvertedResidual:
        return InvertedResidual(
            channels,
            stage.width,
            stage.expansion * channels,
            kernel=stage.kernel,
            stride=stride,
            squeeze_excite=stage.squeeze_excite,
            activation=activation,
        )

    further = (block(stage.width, (1, 1)) for _ in range(stage.depth - 1))
    return nn.Sequential(block(channels_in, stage.stride), *further)
