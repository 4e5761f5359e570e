import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from search_spaces import InfeasibleArchitectureError
from search_spaces.cells import Cell
from search_spaces.cost import count_parameters
from search_spaces.genotype import EDGES, NODES, OPERATIONS, CellGenotype
from tests.search_spaces.cells import CELL_WITH_PATH, cell, uniform_cell

CHANNELS = 3


@given(CELL_WITH_PATH)
@settings(max_examples=40, deadline=None)
def test_forward_equals_the_sum_over_all_edges(genotype: CellGenotype) -> None:
    module = Cell(genotype, CHANNELS).eval()
    x_NCHW = torch.rand(2, CHANNELS, 4, 4)
    nodes = [x_NCHW]
    for target in range(1, NODES):
        node = torch.zeros_like(x_NCHW)  # what `none` adds
        for source in range(target):
            name = f"{source}_{target}"
            if name in module.operations:
                node = node + module.operations[name](nodes[source])
        nodes.append(node)
    assert torch.allclose(module(x_NCHW), nodes[-1], atol=1e-6)


@given(CELL_WITH_PATH, st.data())
@settings(max_examples=40, deadline=None)
def test_cells_that_differ_in_dead_edges_only_are_the_same_network(genotype: CellGenotype, data: st.DataObject) -> None:
    other = _with_other_dead_edges(genotype, data)
    first, second = Cell(genotype, CHANNELS).eval(), Cell(other, CHANNELS).eval()
    second.load_state_dict(first.state_dict())  # strict: the same weights under the same names
    x_NCHW = torch.rand(2, CHANNELS, 4, 4)
    assert torch.equal(first(x_NCHW), second(x_NCHW))


def test_cell_of_skips_adds_its_input_four_times_and_has_no_weights() -> None:
    module = Cell(uniform_cell("skip"), CHANNELS)
    x_NCHW = torch.rand(2, CHANNELS, 4, 4)
    assert torch.allclose(module(x_NCHW), 4 * x_NCHW)
    assert count_parameters(module) == 0


def test_cell_with_one_skip_is_the_identity() -> None:
    x_NCHW = torch.rand(2, CHANNELS, 4, 4)
    assert torch.equal(Cell(cell(e03="skip"), CHANNELS)(x_NCHW), x_NCHW)


def test_cell_of_convolutions_has_six_times_their_weights() -> None:
    assert count_parameters(Cell(uniform_cell("conv3x3"), 16)) == 6 * 2336


@pytest.mark.parametrize("genotype", [uniform_cell("none"), cell(e01="conv3x3", e02="skip"), cell(e13="skip")])
def test_cell_without_a_path_cannot_be_built(genotype: CellGenotype) -> None:
    with pytest.raises(InfeasibleArchitectureError, match="no path from input to output"):
        Cell(genotype, CHANNELS)


def _with_other_dead_edges(genotype: CellGenotype, data: st.DataObject) -> CellGenotype:
    """Put other operations on dead edges for as long as that leaves them dead."""
    live = genotype.live_edges()
    for edge in EDGES:
        if edge not in live:
            other = CellGenotype({**genotype.operations, edge: data.draw(st.sampled_from(OPERATIONS))})
            genotype = other if other.live_edges() == live else genotype
    return genotype
