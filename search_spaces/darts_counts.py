"""How many cells of DARTS there are, and how many of them differ in more than the order of their nodes."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations, product
from typing import TypeAlias

from search_spaces.darts_genotype import INPUTS, NODES, OPERATIONS, DartsCell, DartsNode, orders

__all__ = ["number_of_cells", "number_of_different_cells"]

_Edge: TypeAlias = tuple[int, int]


def number_of_cells(operations: int = len(OPERATIONS)) -> int:
    """Return the number of cells of one kind, with so many operations on each of the eight edges."""
    edges = 2 * len(NODES)
    return sum(1 for _ in _wirings()) * int(operations**edges)


def number_of_different_cells(operations: int = len(OPERATIONS)) -> int:
    """Return the number of cells of one kind that differ in more than the order of their nodes.

    A cell is written down in as many ways as its nodes have orders, divided by those that change nothing. So each
    cell counts as the number of the latter divided by the number of all, which are summed wiring by wiring: an order
    that keeps the wiring changes nothing where the edges that it exchanges have one operation (Burnside's lemma).
    """
    total = Fraction(0)
    for wiring in _wirings():
        every = orders(wiring)
        keeping = (order for order in every if wiring.in_order(order) == wiring)
        unchanged = sum(operations ** _groups_of_edges(wiring, order) for order in keeping)
        total += Fraction(unchanged, len(every))
    return int(total)


def _wirings() -> Iterator[DartsCell]:
    """Yield a cell for every choice of what the nodes read."""
    same = (OPERATIONS[0], OPERATIONS[0])
    for choice in product(*(tuple(combinations(range(node), 2)) for node in NODES)):
        yield DartsCell(tuple(DartsNode(sources, same) for sources in choice))


def _groups_of_edges(wiring: DartsCell, order: tuple[int, ...]) -> int:
    """Return how many groups of edges there are, of which each is moved around within itself."""
    numbers = {0: 0, 1: 1} | {old: new for new, old in enumerate(order, start=INPUTS)}
    left = {(node, source) for node, own in zip(NODES, wiring.nodes, strict=True) for source in own.sources}
    groups = 0
    while left:
        groups += 1
        edge = left.pop()
        while (edge := _moved(edge, numbers)) in left:
            left.remove(edge)
    return groups


def _moved(edge: _Edge, numbers: Mapping[int, int]) -> _Edge:
    return numbers[edge[0]], numbers[edge[1]]
