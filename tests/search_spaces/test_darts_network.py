from collections.abc import Sequence
from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from torch import nn

from search_spaces.cost import count_multiply_adds, count_parameters
from search_spaces.darts_genotype import NODES, OPERATIONS, DartsCell, DartsGenotype
from search_spaces.darts_network import darts_network
from search_spaces.darts_operations import CONSTRUCTORS, FactorizedReduction
from search_spaces.shapes import ImageShape
from search_spaces.skeleton import AxisStride
from tests.search_spaces.darts import ANY_DARTS_CELL, DARTS_V2

CHANNELS = 2


@pytest.mark.slow
def test_published_network_has_its_published_size_and_multiply_adds() -> None:
    with torch.device("meta"):
        model = darts_network(DARTS_V2, (3, 32, 32), 10, channels=36, cells=20)
    assert count_parameters(model) == 3_349_342
    assert count_multiply_adds(model, (3, 32, 32)) == 528_359_040


def test_every_operation_is_built_with_its_weights() -> None:
    assert set(CONSTRUCTORS) == set(OPERATIONS)
    weights = {name: count_parameters(CONSTRUCTORS[name](8, (1, 1))) for name in OPERATIONS}
    depthwise_3, depthwise_5 = (9 + 8 + 2) * 8, (25 + 8 + 2) * 8
    assert weights == {
        "skip": 0,
        "max_pool_3x3": 0,
        "avg_pool_3x3": 0,
        "sep_conv_3x3": 2 * depthwise_3,
        "sep_conv_5x5": 2 * depthwise_5,
        "dil_conv_3x3": depthwise_3,
        "dil_conv_5x5": depthwise_5,
    }
    assert count_parameters(CONSTRUCTORS["skip"](8, (2, 2))) == 8 * 8 + 16


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (1, 2)], ids=str)
@pytest.mark.parametrize("size", [(8, 8), (5, 3), (2, 7)], ids=str)
def test_operation_halves_any_size_rounded_up(name: str, stride: AxisStride, size: tuple[int, int]) -> None:
    x_NCHW = torch.rand(2, 4, *size, requires_grad=True)
    y_NCHW = CONSTRUCTORS[name](4, stride)(x_NCHW)
    assert y_NCHW.shape == (2, 4, -(-size[0] // stride[0]), -(-size[1] // stride[1]))
    y_NCHW.square().sum().backward()
    assert x_NCHW.grad is not None


def test_factorized_reduction_looks_at_even_and_at_odd_pixels() -> None:
    reduction = FactorizedReduction(1, 2, (2, 2)).eval()
    for convolution in (reduction.first, reduction.second):
        nn.init.ones_(convolution.weight)
    image_NCHW = torch.arange(9.0).view(1, 1, 3, 3)
    answer_NCHW = reduction(image_NCHW)
    assert torch.allclose(answer_NCHW[0, 0], torch.tensor([[0.0, 2.0], [6.0, 8.0]]), atol=1e-3)
    assert torch.allclose(answer_NCHW[0, 1], torch.tensor([[4.0, 0.0], [0.0, 0.0]]), atol=1e-3)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 3), (1, 2, 128), (3, 97, 64)], ids=str)
def test_network_runs_on_images_of_any_size(shape: ImageShape) -> None:
    model = darts_network(DARTS_V2, shape, 7, channels=4, cells=5)
    model(torch.rand(2, *shape)).square().sum().backward()
    assert [name for name, weight in model.named_parameters() if weight.grad is None] == []


def test_network_drops_paths_in_training_only() -> None:
    model = darts_network(DARTS_V2, (1, 8, 8), 3, channels=4, cells=3, drop_path=0.5)
    images_NCHW = torch.rand(8, 1, 8, 8)
    assert not torch.equal(model(images_NCHW), model(images_NCHW))
    model.eval()
    assert torch.equal(model(images_NCHW), model(images_NCHW))


def test_network_lists_sizes_that_cannot_be() -> None:
    with pytest.raises(ValueError, match=r"num_classes=0; at least 1, cells=2; at least 3, channels=5; give an even"):
        darts_network(DARTS_V2, (1, 8, 8), 0, channels=5, cells=2)


@given(ANY_DARTS_CELL.filter(lambda cell: cell.canonical() != cell))
@settings(max_examples=12, deadline=None)
def test_networks_of_one_canonical_cell_answer_alike(cell: DartsCell) -> None:
    canonical = cell.canonical()
    order = next(order for order in permutations(NODES) if _in_order(cell, order) == canonical)
    first, second = (
        darts_network(DartsGenotype(normal=c, reduction=c), (1, 6, 6), 3, channels=CHANNELS, cells=3)
        for c in (cell, canonical)
    )
    _copy(first, second, order)
    images_NCHW = torch.rand(4, 1, 6, 6)
    for is_training in (True, False):
        answers = [model.train(is_training)(images_NCHW) for model in (first, second)]
        torch.testing.assert_close(answers[0], answers[1], rtol=1e-4, atol=1e-4)


def _in_order(cell: DartsCell, order: Sequence[int]) -> DartsCell | None:
    try:
        return cell.in_order(order)
    except ValueError:
        return None


def _copy(first: nn.Sequential, second: nn.Sequential, order: Sequence[int]) -> None:
    """Copy the weights into a network whose nodes have another order; what reads a cell's answer is reordered, too."""
    numbers = {0: 0, 1: 1} | {old: new for new, old in enumerate(order, start=2)}
    state = {_renamed(name, numbers): value for name, value in first.state_dict().items()}
    for name, value in state.items():
        parts = name.split(".")
        is_of_an_input = parts[:2] == ["cells", "cells"] and parts[3] == "inputs" and value.dim() == 4
        reads_cell = is_of_an_input and int(parts[2]) - (2 - int(parts[4])) >= 0
        if reads_cell or name == "head.weight":
            width = value.shape[1] // len(NODES)
            columns = [node - 2 for node in order]
            state[name] = torch.cat([value[:, width * c : width * (c + 1)] for c in columns], dim=1)
    second.load_state_dict(state)


def _renamed(name: str, numbers: dict[int, int]) -> str:
    before, found, after = name.partition(".operations.")
    if not found:
        return name
    edge, rest = after.split(".", 1)
    node, source = (numbers[int(number)] for number in edge.split("_"))
    return f"{before}{found}{node}_{source}.{rest}"
