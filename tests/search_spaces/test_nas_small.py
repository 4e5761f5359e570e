import numpy as np
import pytest
import torch

from search_spaces import InfeasibleArchitectureError, JsonScalar, catalog
from search_spaces.cells import Cell
from search_spaces.cost import count_multiply_adds, count_parameters
from search_spaces.genotype import EDGES, OPERATIONS, CellGenotype, edge_name
from tests.search_spaces.cells import cell, configuration, uniform_cell

nas_small = catalog.load("nas_small")
SPACE = nas_small.SPACE
DIGITS = (1, 8, 8)


def test_cell_without_any_operation_is_refused_with_the_reason() -> None:
    assert SPACE.refusal(configuration(uniform_cell("none"))) == "no path from input to output"
    with pytest.raises(InfeasibleArchitectureError, match="no path from input to output"):
        nas_small.build_model(configuration(uniform_cell("none")), DIGITS, 10)


@pytest.mark.parametrize("genotype", [uniform_cell("skip"), cell(e03="skip")], ids=["all_skip", "one_skip"])
def test_cell_without_weights_is_feasible_and_its_head_is_counted(genotype: CellGenotype) -> None:
    values = configuration(genotype)
    assert SPACE.refusal(values) is None
    model = nas_small.build_model(values, DIGITS, 10)
    cells = [module for module in model.modules() if isinstance(module, Cell)]
    assert len(cells) == 2
    assert sum(count_parameters(module) for module in cells) == 0
    # stem 176; reduction 16 * 32 * 9 + 64, 32 * 32 * 9 + 64 and 16 * 32; last norm 64; head 330
    assert count_parameters(model) == 176 + 4672 + 9280 + 512 + 64 + 330


def test_key_is_equal_for_cells_that_differ_in_dead_edges_only() -> None:
    live = configuration(cell(e03="conv3x3"))
    dead_ends = [cell(e03="conv3x3", e01="skip", e12="conv1x1"), cell(e03="conv3x3", e12="conv3x3", e23="skip")]
    assert {SPACE.key(configuration(genotype)) for genotype in dead_ends} == {SPACE.key(live)}
    assert SPACE.canonical(configuration(dead_ends[0])) == live
    assert SPACE.key(configuration(cell(e03="conv1x1"))) != SPACE.key(live)


def test_networks_of_equal_keys_answer_alike() -> None:
    torch.manual_seed(0)
    first = nas_small.build_model(configuration(cell(e03="conv3x3", e01="skip", e12="conv1x1")), DIGITS, 10).eval()
    second = nas_small.build_model(configuration(cell(e03="conv3x3")), DIGITS, 10).eval()
    second.load_state_dict(first.state_dict())
    images_NCHW = torch.rand(3, *DIGITS)
    assert torch.equal(first(images_NCHW), second(images_NCHW))


def test_mutate_architecture_changes_one_architecture_parameter() -> None:
    rng = np.random.default_rng(0)
    parent = SPACE.sample(rng)
    names = SPACE.names("architecture")
    for _ in range(30):
        child = SPACE.mutate(parent, rng, names=names)
        changed = [name for name in SPACE.names() if child[name] != parent[name]]
        assert len(changed) == 1
        assert changed[0] in names


def test_most_random_cells_are_feasible() -> None:
    rng = np.random.default_rng(0)
    refused = sum(SPACE.refusal(SPACE.sample(rng)) is not None for _ in range(500))
    assert 0 < refused < 50


def test_largest_network_stays_small_enough_for_a_cpu() -> None:
    largest = configuration(uniform_cell("conv3x3"), channels=24, cells_per_stage=2)
    model = nas_small.build_model(largest, DIGITS, 10)
    assert count_parameters(model) < 400_000
    assert count_multiply_adds(model, DIGITS) < 9_000_000


def test_every_operation_is_offered_on_every_edge() -> None:
    for edge in EDGES:
        values: dict[str, JsonScalar] = configuration(uniform_cell("skip"))
        for operation in OPERATIONS:
            assert SPACE.validate(values | {edge_name(edge): operation})


def test_graph_draws_dead_edges_too() -> None:
    drawn = catalog.graph(nas_small, configuration(cell(e03="conv3x3", e01="skip")))
    assert drawn is not None
    assert {(edge.label, edge.live) for edge in drawn.edges} == {("conv3x3", True), ("skip", False)}


def test_different_networks_are_counted_quickly() -> None:
    # 5,260 cells, 5 widths, 2 depths, 7 shares of dropout
    assert SPACE.different() == 5260 * 5 * 2 * 7


def test_key_is_equal_for_cells_that_differ_in_the_numbers_of_nodes_and_in_skips() -> None:
    cells = [cell(e01="conv3x3", e13="conv1x1"), cell(e02="conv3x3", e23="conv1x1")]
    cells.append(cell(e01="conv3x3", e12="skip", e23="conv1x1"))
    assert len({SPACE.key(configuration(genotype)) for genotype in cells}) == 1
