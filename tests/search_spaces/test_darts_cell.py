import numpy as np
import pytest
import torch

from search_spaces import catalog
from search_spaces.catalog import darts_cell
from search_spaces.cost import count_parameters
from search_spaces.darts_genotype import DartsGenotype
from tests.search_spaces.darts import DARTS_V2

SPACE = darts_cell.SPACE


def test_defaults_are_the_published_cells_in_a_small_network() -> None:
    assert SPACE.defaults is not None
    assert DartsGenotype.from_configuration(SPACE.defaults) == DARTS_V2
    assert count_parameters(darts_cell.build_model(SPACE.defaults, (1, 8, 8), 10)) < 50_000


def test_key_is_equal_for_cells_that_differ_in_the_order_of_nodes_only() -> None:
    assert SPACE.defaults is not None
    first, second, third, fourth = DARTS_V2.normal.nodes
    assert first == second
    other = DARTS_V2.normal.in_order([2, 4, 3, 5])
    assert other.nodes == (first, third, second, fourth.renumbered({3: 4, 4: 3}))
    values = DartsGenotype(normal=other, reduction=DARTS_V2.reduction).to_configuration()
    renumbered = SPACE.defaults.replace(**values)
    assert renumbered != SPACE.defaults
    assert SPACE.key(renumbered) == SPACE.key(SPACE.defaults)
    assert SPACE.key(renumbered.replace(normal_2_first="skip")) != SPACE.key(SPACE.defaults)


def test_the_published_network_is_in_the_space() -> None:
    assert SPACE.defaults is not None
    largest = SPACE.defaults.replace(channels=36, cells=20)
    with torch.device("meta"):
        model = darts_cell.build_model(largest, (3, 32, 32), 10)
    assert count_parameters(model) == 3_349_342


@pytest.mark.slow
def test_random_networks_run_forward_and_backward() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        configuration = SPACE.sample(rng).replace(cells=3, channels=4)
        model = darts_cell.build_model(configuration, (1, 4, 4), 5)
        model(torch.rand(2, 1, 4, 4)).square().mean().backward()
        assert all(weight.grad is not None for weight in model.parameters())


def test_graph_draws_both_cells() -> None:
    assert SPACE.defaults is not None
    drawn = catalog.graph(catalog.load("darts_cell"), SPACE.defaults)
    assert drawn is not None
    assert [node.label for node in drawn.nodes[:2]] == ["normal 0", "normal 1"]
