from typing import cast

import numpy as np
import pytest
import torch

from search_spaces import catalog
from search_spaces.catalog import nas_bench_201
from search_spaces.cells import Cell
from search_spaces.cost import count_multiply_adds, count_parameters
from search_spaces.networks import CellNetwork, Reduction
from search_spaces.shapes import ImageShape

SPACE = nas_bench_201.SPACE
assert SPACE.defaults is not None
BEST = SPACE.defaults


def test_space_has_15625_cells_of_which_5260_differ_and_nothing_else_is_searched() -> None:
    assert SPACE.size() == 5**6
    assert SPACE.different() == 5260
    searched = [name for name, parameter in SPACE.parameters.items() if parameter.size() != 1]
    assert searched == list(SPACE.names("architecture"))
    assert nas_bench_201.facts() == {"different": 6466, "exactly_different": 5260}


@pytest.mark.parametrize(("shape", "classes"), [((3, 32, 32), 10), ((3, 32, 32), 100), ((3, 16, 16), 120)], ids=str)
def test_network_of_the_best_cell_has_the_published_size(shape: ImageShape, classes: int) -> None:
    model = cast(CellNetwork, nas_bench_201.build_model(BEST, shape, classes))
    # the frame; 15 cells of four 3x3 and one 1x1 convolution; the head
    assert count_parameters(model) == 72_656 + 4 * 243_040 + 28_000 + 65 * classes
    assert sum(isinstance(module, Cell) for module in model.modules()) == 15
    assert sum(isinstance(module, Reduction) for module in model.modules()) == 2
    if shape[1] == 32:  # the table counts the additions of the head, too: 153.27297 M for ten classes
        assert count_multiply_adds(model, shape) == 153_272_960 + 64 * (classes - 10)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 3), (1, 2, 128), (3, 97, 64)], ids=str)
def test_network_runs_on_images_of_any_size(shape: ImageShape) -> None:
    model = nas_bench_201.build_model(BEST, shape, 7)
    model(torch.rand(2, *shape)).square().sum().backward()
    assert all(weight.grad is not None for weight in model.parameters())
    assert count_parameters(model) == nas_bench_201.costs(BEST, shape, 7).parameters


@pytest.mark.slow
def test_random_cells_run_forward_and_backward_and_cost_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nas_bench_201, "CELLS_PER_STAGE", 1)
    rng = np.random.default_rng(0)
    for _ in range(200):
        configuration = SPACE.sample(rng)
        if SPACE.refusal(configuration) is not None:
            continue
        model = nas_bench_201.build_model(configuration, (1, 4, 4), 5)
        model(torch.rand(2, 1, 4, 4)).square().mean().backward()
        assert all(weight.grad is not None for weight in model.parameters())
        costs = nas_bench_201.costs(configuration, (1, 4, 4), 5)
        assert costs.parameters == count_parameters(model)


def test_graph_draws_the_cell() -> None:
    drawn = catalog.graph(catalog.load("nas_bench_201"), BEST)
    assert drawn is not None
    assert len(drawn.edges) == 6
