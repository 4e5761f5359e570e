import pickle
from itertools import pairwise, product

import pytest
from hypothesis import given

from search_spaces.genotype import EDGES, NODES, CellGenotype, Edge
from search_spaces.graph import GraphEdge, GraphNode, NetworkGraph, cell_graph
from tests.search_spaces.cells import ANY_CELL, cell

ALL_EDGES: tuple[Edge, ...] = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))


def _edges_on_paths(genotype: CellGenotype) -> set[Edge]:
    """Enumerate all increasing node sequences from 0 to 3: slow, and plainly right."""
    live: set[Edge] = set()
    for kept in product((True, False), repeat=NODES - 2):
        nodes = [0, *(node for node, keep in zip(range(1, NODES - 1), kept, strict=True) if keep), NODES - 1]
        path = set(pairwise(nodes))
        if all(genotype.operations[edge] != "none" for edge in path):
            live |= path
    return live


def test_edges_are_those_of_the_benchmark() -> None:
    assert EDGES == ALL_EDGES


@given(ANY_CELL)
def test_live_edges_are_exactly_those_on_a_path(genotype: CellGenotype) -> None:
    assert set(genotype.live_edges()) == _edges_on_paths(genotype)
    assert genotype.has_path() == bool(_edges_on_paths(genotype))


@given(ANY_CELL)
def test_pruned_is_idempotent_and_keeps_live_edges(genotype: CellGenotype) -> None:
    pruned = genotype.pruned()
    assert pruned.pruned() == pruned
    assert pruned.live_edges() == genotype.live_edges()
    assert {edge for edge, operation in pruned.operations.items() if operation != "none"} == set(pruned.live_edges())


@given(ANY_CELL)
def test_string_and_configuration_round_trips(genotype: CellGenotype) -> None:
    assert CellGenotype.parse(genotype.to_string()) == genotype
    assert CellGenotype.from_configuration(genotype.to_configuration()) == genotype
    assert hash(CellGenotype.parse(genotype.to_string())) == hash(genotype)
    assert pickle.loads(pickle.dumps(genotype)) == genotype


def test_to_string_is_the_form_of_the_benchmark() -> None:
    genotype = cell(e01="conv3x3", e02="avg_pool", e12="skip", e03="conv1x1")
    text = "|nor_conv_3x3~0|+|avg_pool_3x3~0|skip_connect~1|+|nor_conv_1x1~0|none~1|none~2|"
    assert genotype.to_string() == text
    assert CellGenotype.parse("|conv3x3~0|+|avg_pool~0|skip~1|+|conv1x1~0|none~1|none~2|") == genotype


def test_live_edges_leave_out_a_branch_that_leads_nowhere() -> None:
    assert cell(e01="skip", e12="conv3x3", e03="skip").live_edges() == ((0, 3),)
    assert cell(e12="conv3x3", e23="conv3x3", e03="skip").live_edges() == ((0, 3),)
    assert cell(e01="skip", e12="conv3x3").live_edges() == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "|skip~0|",
        "|skip~0|+|skip~0|skip~0|+|skip~0|skip~1|skip~2|",
        "|skip~0|+|skip~0|skip~1|+|skip~0|skip~1|skip~3|",
        "|skip~0|+|skip~0|skip~1|+|skip~0|skip~1|skip2|",
        "|skip~0|+|skip~0|skip~1|+|skip~0|skip~1|max_pool~2|",
    ],
)
def test_parse_refuses_what_is_no_cell(text: str) -> None:
    with pytest.raises(ValueError, match="cell"):
        CellGenotype.parse(text)


def test_constructor_lists_all_mistakes() -> None:
    operations = {edge: "skip" for edge in EDGES if edge != (2, 3)} | {(0, 1): "conv3x", (3, 0): "skip"}
    with pytest.raises(ValueError, match="cell genotype") as caught:
        CellGenotype(operations)
    for part in ("edge (2, 3) has no operation", "did you mean 'conv3x3'?", "there is no edge (3, 0)"):
        assert part in str(caught.value)


def test_from_configuration_names_a_missing_edge() -> None:
    with pytest.raises(ValueError, match=r"edge \(2, 3\) has no operation"):
        CellGenotype.from_configuration({f"edge_{s}_{t}": "skip" for s, t in EDGES if (s, t) != (2, 3)})


@given(ANY_CELL)
def test_graph_shows_every_operation_and_marks_dead_ones(genotype: CellGenotype) -> None:
    graph = cell_graph(genotype)
    drawn = {(int(edge.source), int(edge.target)): edge for edge in graph.edges}
    assert {edge: item.label for edge, item in drawn.items()} == {
        edge: operation for edge, operation in genotype.operations.items() if operation != "none"
    }
    assert {edge for edge, item in drawn.items() if item.live} == set(genotype.live_edges())
    assert [node.label for node in graph.nodes] == ["input", "1", "2", "output"]


def test_graph_refuses_edges_that_cannot_be_drawn() -> None:
    nodes = (GraphNode(id="a", label="a"), GraphNode(id="b", label="b"))
    with pytest.raises(ValueError, match="does not point forward"):
        NetworkGraph(nodes=nodes, edges=(GraphEdge(source="b", target="a", label="x"),))
    with pytest.raises(ValueError, match="joins nodes that do not exist"):
        NetworkGraph(nodes=nodes, edges=(GraphEdge(source="a", target="c", label="x"),))
    with pytest.raises(ValueError, match="two nodes have one id"):
        NetworkGraph(nodes=(*nodes, nodes[0]), edges=())
