"""What a cell network costs, by arithmetic: nothing is built, and torch is not needed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from search_spaces.genotype import CellGenotype
from search_spaces.shapes import ImageShape
from search_spaces.skeleton import Skeleton

__all__ = ["CellNetworkCosts", "cell_network_costs"]

_KERNELS: Final[Mapping[str, int]] = MappingProxyType({"conv1x1": 1, "conv3x3": 3})
"""Side of the kernel of every operation that has weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Costs:
    """What one part costs."""

    parameters: int = 0
    multiply_adds: int = 0

    def __add__(self, other: "_Costs") -> "_Costs":
        return _Costs(
            parameters=self.parameters + other.parameters, multiply_adds=self.multiply_adds + other.multiply_adds
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CellNetworkCosts:
    """What a network costs as it is built, and as it would with the operations of its dead edges.

    Multiply-adds are those of one image's convolutions and matrix product, as everywhere here. NAS-Bench-201 tells
    declared costs; its `flops` are the declared multiply-adds and one addition for each class, the bias of the head,
    while pooling and normalisation count nothing.

    Attributes:
        parameters: of what is built, equal to the sum over the network's `parameters()`.
        declared_parameters: with dead edges.
        multiply_adds: of what is built.
        declared_multiply_adds: with dead edges.
    """

    parameters: int
    declared_parameters: int
    multiply_adds: int
    declared_multiply_adds: int


def cell_network_costs(
    genotype: CellGenotype,
    input_shape: ImageShape,
    num_classes: int,
    *,
    channels: int,
    cells_per_stage: int,
    skeleton: Skeleton | None = None,
) -> CellNetworkCosts:
    """Return the costs of a `CellNetwork` of the same arguments; a cell without a path costs its declared edges only.

    Args:
        genotype: the cell.
        input_shape: (channels, height, width) of one image.
        num_classes: number of logits.
        channels: of the first stage.
        cells_per_stage: cells in each stage.
        skeleton: where the feature map is halved; None: what fits the images.
    """
    image_channels, height, width = input_shape
    skeleton = skeleton or Skeleton.fitting(height, width)
    frame = _stem(image_channels, channels, height, width, skeleton)
    live, declared = _Costs(), _Costs()
    sizes = skeleton.stage_sizes(height, width)
    for stage, size in enumerate(sizes):
        wide = channels * 2**stage
        if stage:
            frame += _reduction(wide // 2, wide, size)
        live += _cells(genotype.pruned(), wide, size, cells_per_stage)
        declared += _cells(genotype, wide, size, cells_per_stage)
    last = channels * 2 ** (len(sizes) - 1)
    frame += _Costs(parameters=2 * last + (last + 1) * num_classes, multiply_adds=last * num_classes)
    return CellNetworkCosts(
        parameters=(frame + live).parameters,
        declared_parameters=(frame + declared).parameters,
        multiply_adds=(frame + live).multiply_adds,
        declared_multiply_adds=(frame + declared).multiply_adds,
    )


def _convolution(kernel: int, channels_in: int, channels_out: int, size: Sequence[int], *, has_norm: bool) -> _Costs:
    """A convolution without a bias; `size` is that of its answer."""
    weights = kernel**2 * channels_in * channels_out
    return _Costs(parameters=weights + 2 * channels_out * has_norm, multiply_adds=weights * size[0] * size[1])


def _stem(image_channels: int, channels: int, height: int, width: int, skeleton: Skeleton) -> _Costs:
    costs = _Costs()
    channels_in = image_channels
    for size in skeleton.stem_sizes(height, width):
        costs += _convolution(3, channels_in, channels, size, has_norm=True)
        channels_in = channels
    return costs


def _reduction(channels_in: int, channels_out: int, size: Sequence[int]) -> _Costs:
    return (
        _convolution(3, channels_in, channels_out, size, has_norm=True)
        + _convolution(3, channels_out, channels_out, size, has_norm=True)
        + _convolution(1, channels_in, channels_out, size, has_norm=False)
    )


def _cells(genotype: CellGenotype, channels: int, size: Sequence[int], number: int) -> _Costs:
    costs = _Costs()
    for operation in genotype.operations.values():
        if operation in _KERNELS:
            costs += _convolution(_KERNELS[operation], channels, channels, size, has_norm=True)
    return _Costs(parameters=number * costs.parameters, multiply_adds=number * costs.multiply_adds)
