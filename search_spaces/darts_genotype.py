"""The cells of DARTS: four nodes, each the sum of two operations on two earlier nodes; nothing here needs torch.

Nodes 0 and 1 of a cell are what the two cells before it answer, nodes 2 to 5 are its own, and its answer is the four of
them one behind the other. A network has two kinds of cells, normal ones and ones that reduce the feature map.

Source: Liu, Simonyan and Yang 2019, DARTS: Differentiable Architecture Search, arXiv:1806.09055, section 2.1 and 3.1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations, permutations
from typing import Final, Literal, TypeAlias

from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.errors import did_you_mean

__all__ = [
    "INPUTS",
    "NODES",
    "OPERATIONS",
    "CellKind",
    "DartsCell",
    "DartsGenotype",
    "DartsNode",
    "canonical_cells",
    "orders",
    "source_pairs",
]

CellKind: TypeAlias = Literal["normal", "reduction"]
"""Keeps the feature map, or halves it."""
INPUTS: Final = 2
"""Nodes of a cell that are what the cells before it answer."""
NODES: Final = range(INPUTS, INPUTS + 4)
"""Numbers of a cell's own nodes."""
OPERATIONS: Final = (
    "skip",
    "max_pool_3x3",
    "avg_pool_3x3",
    "sep_conv_3x3",
    "sep_conv_5x5",
    "dil_conv_3x3",
    "dil_conv_5x5",
)
"""Those of the paper (section 3.1.1) but `none`, which no cell of its results has."""


@dataclass(frozen=True, slots=True)
class DartsNode:
    """A node: the sum of two operations on two nodes before it.

    Attributes:
        sources: numbers of the two nodes that it reads, the smaller one first.
        operations: what is done with each of them.
    """

    sources: tuple[int, int]
    operations: tuple[str, str]

    def renumbered(self, numbers: Mapping[int, int]) -> "DartsNode":
        """Return the same node where the others have other numbers; one that is not named keeps its number."""
        first, second = (numbers.get(source, source) for source in self.sources)
        if first < second:
            return DartsNode((first, second), self.operations)
        return DartsNode((second, first), self.operations[::-1])


@dataclass(frozen=True, slots=True)
class DartsCell:
    """A cell: its four nodes, in their order.

    Raises:
        ValueError: there are more or fewer nodes, or a node reads one that is not before it, the same one twice, or by
            an unknown operation; all mistakes are listed.
    """

    nodes: tuple[DartsNode, ...]

    def __post_init__(self) -> None:
        """Check the nodes."""
        problems = [] if len(self.nodes) == len(NODES) else [f"{len(self.nodes)} nodes; a cell has {len(NODES)}"]
        for number, node in enumerate(self.nodes, start=INPUTS):
            first, second = node.sources
            if not 0 <= first < second < number:
                problems.append(f"node {number} reads {first} and {second}; give two different ones below {number}")
            for operation in node.operations:
                if operation not in OPERATIONS:
                    suggestion = did_you_mean(operation, OPERATIONS)
                    names = ", ".join(OPERATIONS)
                    problems.append(f"node {number}: no operation {operation!r};{suggestion} operations: {names}")
        if problems:
            raise ValueError(f"DARTS cell: {'; '.join(problems)}")

    def in_order(self, order: Sequence[int]) -> "DartsCell":
        """Return the same cell with its nodes in another order.

        Args:
            order: the present number of each node, in the new order.

        Raises:
            ValueError: a node would come before one that it reads.
        """
        return DartsCell(_reordered(self, order))

    def canonical(self) -> "DartsCell":
        """Return the one cell that stands for all that differ in the order of their nodes only.

        The order means nothing: whatever reads the cell's answer can have its weights in the same order. What is not
        recognised: two nodes that are equal sums without weights (skips and poolings of the same nodes), so that it is
        all one which of them is read, give equal networks, and yet cells that differ. Whether a skip of an input has
        weights depends on the kind of the cell and the size of the images.
        """
        return _canonical(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class DartsGenotype:
    """The two cells of a network.

    Attributes:
        normal: of the cells that keep the feature map.
        reduction: of the two that halve it.
    """

    normal: DartsCell
    reduction: DartsCell

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, JsonScalar]) -> "DartsGenotype":
        """Read the parameters `normal_2_first`, `normal_2_second`, `normal_3_sources`, ... of a configuration.

        Raises:
            KeyError: a parameter is missing.
            ValueError: a cell cannot be.
        """
        return cls(normal=_read(configuration, "normal"), reduction=_read(configuration, "reduction"))

    def to_configuration(self) -> dict[str, JsonScalar]:
        """Return the parameters that `from_configuration` reads."""
        return {**_written("normal", self.normal), **_written("reduction", self.reduction)}


def canonical_cells(configuration: Configuration) -> Configuration:
    """Return a configuration with the canonical form of both cells; other parameters stay.

    `DartsCell.canonical` says which equal networks it takes for different ones.
    """
    genotype = DartsGenotype.from_configuration(configuration)
    canonical = DartsGenotype(normal=genotype.normal.canonical(), reduction=genotype.reduction.canonical())
    return configuration.replace(**canonical.to_configuration())


def source_pairs(node: int) -> tuple[str, ...]:
    """Return the values of a node's parameter `sources`, all pairs of nodes before it: `0+1`, `0+2`, `1+2` for 3."""
    return tuple(f"{first}+{second}" for first, second in combinations(range(node), 2))


def orders(cell: DartsCell) -> tuple[tuple[int, ...], ...]:
    """Return the orders in which the nodes of a cell can come: each after those that it reads."""
    return _orders(tuple(node.sources for node in cell.nodes))


@lru_cache(maxsize=4096)
def _canonical(cell: DartsCell) -> DartsCell:
    forms = (_reordered(cell, order) for order in orders(cell))
    return DartsCell(min(forms, key=lambda nodes: [(node.sources, node.operations) for node in nodes]))


def _reordered(cell: DartsCell, order: Sequence[int]) -> tuple[DartsNode, ...]:
    numbers = {old: new for new, old in enumerate(order, start=INPUTS)}
    return tuple(cell.nodes[old - INPUTS].renumbered(numbers) for old in order)


@cache  # there are 180 wirings
def _orders(wiring: tuple[tuple[int, int], ...]) -> tuple[tuple[int, ...], ...]:
    found = []
    for order in permutations(NODES):
        place = {old: new for new, old in enumerate(order)}
        if all(place.get(source, -1) < place[old] for old in order for source in wiring[old - INPUTS]):
            found.append(order)
    return tuple(found)


def _read(configuration: Mapping[str, JsonScalar], kind: CellKind) -> DartsCell:
    nodes = []
    for node in NODES:
        pair = source_pairs(node)[0] if node == INPUTS else str(configuration[f"{kind}_{node}_sources"])
        first, second = pair.split("+")
        operations = (str(configuration[f"{kind}_{node}_first"]), str(configuration[f"{kind}_{node}_second"]))
        nodes.append(DartsNode((int(first), int(second)), operations))
    return DartsCell(tuple(nodes))


def _written(kind: CellKind, cell: DartsCell) -> dict[str, JsonScalar]:
    values: dict[str, JsonScalar] = {}
    for number, node in zip(NODES, cell.nodes, strict=True):
        if number != INPUTS:  # the first one has nothing but the inputs to read
            values[f"{kind}_{number}_sources"] = f"{node.sources[0]}+{node.sources[1]}"
        values[f"{kind}_{number}_first"], values[f"{kind}_{number}_second"] = node.operations
    return values
