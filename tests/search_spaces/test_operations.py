import math

import pytest
import torch

from search_spaces.cost import count_parameters
from search_spaces.genotype import OPERATIONS
from search_spaces.operations import CONSTRUCTORS, build_operation

BUILDABLE = [name for name in OPERATIONS if name != "none"]


def test_every_operation_of_a_cell_but_none_can_be_built() -> None:
    assert sorted(CONSTRUCTORS) == sorted(BUILDABLE)


@pytest.mark.parametrize(("name", "parameters"), [("conv3x3", 2336), ("conv1x1", 288), ("skip", 0), ("avg_pool", 0)])
def test_operation_has_the_weights_of_the_benchmark_at_16_channels(name: str, parameters: int) -> None:
    assert count_parameters(build_operation(name, 16, 16)) == parameters


@pytest.mark.parametrize("name", BUILDABLE)
@pytest.mark.parametrize("stride", [1, 2, (1, 2)])
@pytest.mark.parametrize(("channels_in", "channels_out"), [(4, 4), (4, 6)])
@pytest.mark.parametrize(("height", "width"), [(8, 8), (5, 3), (1, 1)])
def test_operation_builds_and_backpropagates(
    name: str, stride: int | tuple[int, int], channels_in: int, channels_out: int, height: int, width: int
) -> None:
    operation = build_operation(name, channels_in, channels_out, stride)
    x_NCHW = torch.rand(3, channels_in, height, width, requires_grad=True)
    y_NCHW = operation(x_NCHW)
    vertical, horizontal = stride if isinstance(stride, tuple) else (stride, stride)
    assert y_NCHW.shape == (3, channels_out, math.ceil(height / vertical), math.ceil(width / horizontal))
    y_NCHW.square().sum().backward()
    assert x_NCHW.grad is not None
    assert all(weight.grad is not None for weight in operation.parameters())


def test_avg_pool_does_not_fade_the_border() -> None:
    ones_NCHW = torch.ones(1, 2, 5, 3)
    assert torch.allclose(build_operation("avg_pool", 2, 2)(ones_NCHW), ones_NCHW)


@pytest.mark.parametrize(("name", "hint"), [("none", "operations: skip"), ("conv3x", r"did you mean 'conv3x3'\?")])
def test_unknown_operation_is_refused(name: str, hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        build_operation(name, 4, 4)
