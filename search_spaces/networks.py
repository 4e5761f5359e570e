"""Whole networks: a skeleton that fits the size of the images, filled with equal cells.

Shapes: N images, C channels, H height, W width, K classes.
"""

from collections import OrderedDict

from torch import Tensor, nn

from search_spaces.cells import Cell
from search_spaces.genotype import CellGenotype
from search_spaces.operations import relu_conv_norm
from search_spaces.skeleton import AxisStride, Skeleton

__all__ = ["CellNetwork", "MapMean", "Reduction", "image_stem"]


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
        skeleton: where the feature map is halved; None: what fits the images.

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
        skeleton: Skeleton | None = None,
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
        skeleton = skeleton or Skeleton.fitting(*input_shape[1:])
        stem = image_stem(input_shape[0], channels, skeleton.stem)
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


def image_stem(channels_in: int, channels: int, strides: tuple[AxisStride, ...]) -> nn.Sequential:
    """Return a convolution of 3x3 with normalisation for each stride, the later ones behind a ReLU."""
    # No ReLU before the first convolution: images may have been normalised to negative values.
    first = nn.Conv2d(channels_in, channels, 3, stride=strides[0], padding=1, bias=False)
    further = [relu_conv_norm(channels, channels, 3, stride) for stride in strides[1:]]
    return nn.Sequential(first, nn.BatchNorm2d(channels), *further)


def _check_positive(sizes: dict[str, int]) -> None:
    if wrong := [f"{name}={size}" for name, size in sizes.items() if size < 1]:
        raise ValueError(f"cell network: {', '.join(wrong)}; sizes are at least 1")
