from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_spaces.darts_counts import number_of_cells, number_of_different_cells
from search_spaces.darts_genotype import NODES, OPERATIONS, DartsCell, DartsGenotype, DartsNode, orders
from search_spaces.graph import darts_graph
from tests.search_spaces.darts import ANY_DARTS_CELL, DARTS_V2


@given(ANY_DARTS_CELL, ANY_DARTS_CELL)
def test_configuration_round_trips(normal: DartsCell, reduction: DartsCell) -> None:
    genotype = DartsGenotype(normal=normal, reduction=reduction)
    assert DartsGenotype.from_configuration(genotype.to_configuration()) == genotype


@given(ANY_DARTS_CELL, st.data())
def test_canonical_is_the_same_for_all_orders_of_the_nodes(cell: DartsCell, data: st.DataObject) -> None:
    order = data.draw(st.sampled_from(orders(cell)))
    assert cell.in_order(order).canonical() == cell.canonical()
    assert cell.canonical() in [cell.in_order(order) for order in orders(cell)]
    assert cell.canonical().canonical() == cell.canonical()


def test_orders_are_those_in_which_a_node_follows_what_it_reads() -> None:
    node, deep = DartsNode((0, 1), ("skip", "skip")), DartsNode((1, 2), ("skip", "skip"))
    assert list(orders(DartsCell((node, deep, deep, DartsNode((2, 3), ("skip", "skip")))))) == [
        (2, 3, 4, 5),
        (2, 3, 5, 4),
        (2, 4, 3, 5),
    ]
    with pytest.raises(ValueError, match="node 2 reads 1 and 3"):
        DartsCell((node, deep, node, node)).in_order((3, 2, 4, 5))


def test_number_of_different_wirings_is_that_of_canonical_forms() -> None:
    pairs = [list(combinations(range(node), 2)) for node in NODES]
    same = ("skip", "skip")
    wirings = [DartsCell(tuple(DartsNode(pair, same) for pair in sources)) for sources in product(*pairs)]
    assert number_of_different_cells(1) == len({cell.canonical() for cell in wirings})
    assert number_of_cells() == 180 * 7**8


@pytest.mark.slow
def test_number_of_different_cells_of_two_operations_is_that_of_canonical_forms() -> None:
    pairs = [list(combinations(range(node), 2)) for node in NODES]
    forms = set()
    for sources in product(*pairs):
        for names in product(OPERATIONS[:2], repeat=8):
            own = zip(sources, names[::2], names[1::2], strict=True)
            forms.add(DartsCell(tuple(DartsNode(pair, (first, second)) for pair, first, second in own)).canonical())
    assert number_of_different_cells(2) == len(forms)


def test_canonical_keeps_other_cells_apart() -> None:
    node = DartsNode((0, 1), ("skip", "max_pool_3x3"))
    other = DartsNode((0, 1), ("max_pool_3x3", "skip"))
    deep = DartsNode((1, 2), ("skip", "skip"))
    assert DartsCell((node, node, other, deep)).canonical() != DartsCell((other, node, node, deep)).canonical()
    assert DartsCell((node, other, node, other)).canonical() == DartsCell((other, other, node, node)).canonical()


def test_cell_lists_all_mistakes() -> None:
    nodes = (DartsNode((0, 1), ("skip", "conv")), DartsNode((2, 1), ("skip", "skip")))
    with pytest.raises(ValueError, match=r"2 nodes; .*node 2: no operation 'conv'.*node 3 reads 2 and 1"):
        DartsCell(nodes)


@given(ANY_DARTS_CELL)
def test_graph_shows_both_cells(cell: DartsCell) -> None:
    graph = darts_graph(DartsGenotype(normal=cell, reduction=DARTS_V2.reduction))
    assert len(graph.nodes) == 2 * 7
    for kind, own in (("normal", cell), ("reduction", DARTS_V2.reduction)):
        drawn = {(edge.source, edge.target): edge.label for edge in graph.edges if edge.source.startswith(kind)}
        for number, node in zip(NODES, own.nodes, strict=True):
            for source, operation in zip(node.sources, node.operations, strict=True):
                assert drawn.pop((f"{kind}_{source}", f"{kind}_{number}")) == operation
            assert drawn.pop((f"{kind}_{number}", f"{kind}_answer")) == "joined"
        assert not drawn


def test_operations_are_those_of_the_paper_without_none() -> None:
    assert len(OPERATIONS) == 7
