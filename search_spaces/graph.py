"""The graph of a network's cells as plain values, for whoever draws it; without torch and without plots."""

from dataclasses import dataclass

from search_spaces import darts_genotype
from search_spaces.darts_genotype import DartsCell, DartsGenotype
from search_spaces.genotype import EDGES, NODES, CellGenotype

__all__ = ["GraphEdge", "GraphNode", "NetworkGraph", "cell_graph", "darts_graph"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """A place where tensors are.

    Attributes:
        id: unique in its graph.
        label: short text inside the node.
        detail: longer text for a tooltip; may be empty.
    """

    id: str
    label: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdge:
    """An operation from one node to another.

    Attributes:
        source: id of the node it reads.
        target: id of the node it adds to.
        label: name of the operation.
        live: whether it lies on a path from the input to the output; dead ones are not built.
    """

    source: str
    target: str
    label: str
    live: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkGraph:
    """A directed acyclic graph; nodes come in an order in which every edge points forward.

    Several cells are parts without an edge between them, one behind the other.

    Attributes:
        nodes: all nodes, the input first, the output last.
        edges: all edges that exist, dead ones included; an edge without an operation is left out.

    Raises:
        ValueError: two nodes have one id, or an edge does not point forward between two of the nodes.
    """

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]

    def __post_init__(self) -> None:
        """Check that the edges join the nodes and point forward."""
        place = {node.id: index for index, node in enumerate(self.nodes)}
        problems = [] if len(place) == len(self.nodes) else ["two nodes have one id"]
        for edge in self.edges:
            if edge.source not in place or edge.target not in place:
                problems.append(f"edge {edge.source} -> {edge.target} joins nodes that do not exist")
            elif place[edge.source] >= place[edge.target]:
                problems.append(f"edge {edge.source} -> {edge.target} does not point forward")
        if problems:
            raise ValueError(f"network graph: {'; '.join(problems)}; nodes: {', '.join(place)}")


def cell_graph(genotype: CellGenotype) -> NetworkGraph:
    """Return the drawing of a cell: its four nodes, and every edge whose operation is not `none`."""
    labels = {0: "input", NODES - 1: "output"}
    live = genotype.live_edges()
    return NetworkGraph(
        nodes=tuple(
            GraphNode(id=str(node), label=labels.get(node, str(node)), detail=_detail(node)) for node in range(NODES)
        ),
        edges=tuple(
            GraphEdge(source=str(edge[0]), target=str(edge[1]), label=genotype.operations[edge], live=edge in live)
            for edge in EDGES
            if genotype.operations[edge] != "none"
        ),
    )


def darts_graph(genotype: DartsGenotype) -> NetworkGraph:
    """Return the drawing of both cells of DARTS, the normal one first; ids and labels begin with the kind."""
    cells = [_darts_cell("normal", genotype.normal), _darts_cell("reduction", genotype.reduction)]
    return NetworkGraph(
        nodes=tuple(node for nodes, _ in cells for node in nodes),
        edges=tuple(edge for _, edges in cells for edge in edges),
    )


def _darts_cell(kind: str, cell: DartsCell) -> tuple[list[GraphNode], list[GraphEdge]]:
    details = {0: "what the cell before the last answers", 1: "what the last cell answers"}
    own = list(darts_genotype.NODES)
    nodes = [
        GraphNode(id=f"{kind}_{node}", label=f"{kind} {node}", detail=details.get(node, "the sum of two operations"))
        for node in (*details, *own)
    ]
    answer = GraphNode(id=f"{kind}_answer", label=f"{kind} answer", detail="the nodes 2 to 5 one behind the other")
    edges = [
        GraphEdge(source=f"{kind}_{source}", target=f"{kind}_{number}", label=operation)
        for number, node in zip(own, cell.nodes, strict=True)
        for source, operation in zip(node.sources, node.operations, strict=True)
    ]
    joined = [GraphEdge(source=f"{kind}_{number}", target=answer.id, label="joined") for number in own]
    return [*nodes, answer], [*edges, *joined]


def _detail(node: int) -> str:
    return "what the cell is given" if node == 0 else "the sum of its incoming edges"
