"""A cell as a module: the live edges of a genotype, each node the sum of what arrives at it."""

from functools import reduce
from operator import add

from torch import Tensor, nn

from search_spaces.errors import InfeasibleArchitectureError
from search_spaces.genotype import NO_PATH, NODES, CellGenotype, Edge
from search_spaces.inheritance import silence
from search_spaces.operations import build_operation

__all__ = ["Cell"]


class Cell(nn.Module):
    """One cell; height, width and channels stay as they are.

    Dead edges are left out, so that every weight receives a gradient in every step and data-parallel training
    need not look for unused ones.

    Args:
        genotype: the operation of every edge.
        channels: channels of every node.

    Shapes:
        x_NCHW (N, channels, H, W) -> the same.

    Raises:
        InfeasibleArchitectureError: no edge is live.
    """

    def __init__(self, genotype: CellGenotype, channels: int) -> None:
        """Build the live edges; their weights are named `operations.0_1`, ... after them."""
        super().__init__()
        self.genotype = genotype.pruned()
        self.edges: tuple[Edge, ...] = genotype.live_edges()
        if not self.edges:
            raise InfeasibleArchitectureError(f"cell {genotype.to_string()}: {NO_PATH}")
        self.operations = nn.ModuleDict(
            {_weight_name(edge): build_operation(genotype.operations[edge], channels, channels) for edge in self.edges}
        )

    def forward(self, x_NCHW: Tensor) -> Tensor:
        """Pass the nodes in order; a node that nothing reaches is not there."""
        nodes: dict[int, Tensor] = {0: x_NCHW}
        for target in range(1, NODES):
            arriving = [self.operations[_weight_name(edge)](nodes[edge[0]]) for edge in self.edges if edge[1] == target]
            if arriving:
                nodes[target] = reduce(add, arriving)
        return nodes[NODES - 1]

    def start_as_identity(self) -> bool:
        """Let nothing but the input arrive at the last node at first; whether that can be.

        It can where the edge from the first node to the last one is a skip, and all others that end there have weights.
        """
        arriving = {edge: self.operations[_weight_name(edge)] for edge in self.edges if edge[1] == NODES - 1}
        straight = arriving.pop((0, NODES - 1), None)
        branches = [operation for operation in arriving.values() if isinstance(operation, nn.Sequential)]
        if not isinstance(straight, nn.Identity) or len(branches) < len(arriving):
            return False
        return all([silence(branch) for branch in branches])

    def extra_repr(self) -> str:
        """Return the cell in the benchmark's form."""
        return self.genotype.to_string()


def _weight_name(edge: Edge) -> str:
    return f"{edge[0]}_{edge[1]}"
