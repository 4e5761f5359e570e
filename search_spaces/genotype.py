"""The genotype of a cell: which operation sits on each edge between the cell's four nodes.

Node 0 is the input, node 3 the output; every node is the sum of its incoming edges. The same cells as in
NAS-Bench-201 (Dong and Yang 2020, arXiv:2001.00326, section 2.1); nothing here needs torch.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from search_spaces.cell_forms import first_of_each_form, published_form
from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.errors import did_you_mean

__all__ = [
    "BENCHMARK_NAMES",
    "EDGES",
    "EDGE_NAMES",
    "NODES",
    "NO_PATH",
    "OPERATIONS",
    "CellGenotype",
    "Edge",
    "canonical_edges",
    "edge_name",
    "why_no_path",
]

Edge: TypeAlias = tuple[int, int]
"""(source node, target node), source < target."""

NODES: Final = 4
"""Nodes of a cell."""
EDGES: Final[tuple[Edge, ...]] = tuple((source, target) for target in range(NODES) for source in range(target))
"""All six edges, sorted by target, then by source, as the benchmark writes them."""
OPERATIONS: Final = ("none", "skip", "conv1x1", "conv3x3", "avg_pool")
"""Names of the operations; `none` is no edge at all."""
BENCHMARK_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "none": "none",
        "skip": "skip_connect",
        "conv1x1": "nor_conv_1x1",
        "conv3x3": "nor_conv_3x3",
        "avg_pool": "avg_pool_3x3",
    }
)
"""Operation -> its name in NAS-Bench-201."""
NO_PATH: Final = "no path from input to output"
"""Why a cell without a live edge is refused."""

_TERM = re.compile(r"([^|~]+)~(\d+)")


def edge_name(edge: Edge) -> str:
    """Return the name of an edge's parameter: (0, 1) -> `edge_0_1`."""
    return f"edge_{edge[0]}_{edge[1]}"


EDGE_NAMES: Final = tuple(edge_name(edge) for edge in EDGES)
"""Names of the parameters of all edges, in the order of `EDGES`."""


@dataclass(frozen=True, slots=True)
class CellGenotype:
    """The operation of every edge.

    Attributes:
        operations: edge -> operation, in the order of `EDGES`.

    Raises:
        ValueError: an edge is missing or unknown, or an operation is; all mistakes are listed.

    Example:
        >>> cell = CellGenotype.parse("|skip_connect~0|+|none~0|none~1|+|none~0|nor_conv_3x3~1|none~2|")
        >>> cell.live_edges()
        ((0, 1), (1, 3))
    """

    operations: Mapping[Edge, str]

    def __post_init__(self) -> None:
        """Check the edges and the operations, and bring them into the order of `EDGES`."""
        problems = [f"edge {edge} has no operation" for edge in EDGES if edge not in self.operations]
        for edge, operation in self.operations.items():
            if edge not in EDGES:
                problems.append(f"there is no edge {edge}; edges: {', '.join(map(str, EDGES))}")
            elif operation not in OPERATIONS:
                known = f"{did_you_mean(str(operation), OPERATIONS)} operations: {', '.join(OPERATIONS)}"
                problems.append(f"edge {edge}: no operation {operation!r};{known}")
        if problems:
            raise ValueError(f"cell genotype: {'; '.join(problems)}")
        object.__setattr__(self, "operations", {edge: self.operations[edge] for edge in EDGES})

    def __hash__(self) -> int:
        return hash(tuple(self.operations.values()))

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, JsonScalar]) -> "CellGenotype":
        """Read the parameters `edge_0_1`, `edge_0_2`, ... of a configuration; the others are of no concern.

        Raises:
            ValueError: an edge is missing or has an unknown operation.
        """
        named = {edge: configuration.get(edge_name(edge)) for edge in EDGES}
        return cls({edge: str(operation) for edge, operation in named.items() if operation is not None})

    @classmethod
    def parse(cls, text: str) -> "CellGenotype":
        """Read the benchmark's form, `|op~0|+|op~0|op~1|+|op~0|op~1|op~2|`, with its names or ours.

        Raises:
            ValueError: the text has another form or names an unknown operation.
        """
        ours = {theirs: name for name, theirs in BENCHMARK_NAMES.items()}
        operations: dict[Edge, str] = {}
        for target, group in enumerate(text.strip().split("+"), start=1):
            for term in group.strip("|").split("|"):
                match = _TERM.fullmatch(term)
                if match is None or (int(match[2]), target) in operations:
                    raise ValueError(
                        f"cell {text!r}: {term!r} is no new `operation~source`; form: |op~0|+|op~0|op~1|+..."
                    )
                operations[(int(match[2]), target)] = ours.get(match[1], match[1])
        return cls(operations)

    def to_string(self) -> str:
        """Return the benchmark's form with the benchmark's names, which its tables are keyed by."""
        groups = (
            "|".join(f"{BENCHMARK_NAMES[self.operations[(source, target)]]}~{source}" for source in range(target))
            for target in range(1, NODES)
        )
        return "+".join(f"|{group}|" for group in groups)

    def to_configuration(self) -> dict[str, JsonScalar]:
        """Return the parameters `edge_0_1`, ... that `from_configuration` reads."""
        return {edge_name(edge): operation for edge, operation in self.operations.items()}

    def live_edges(self) -> tuple[Edge, ...]:
        """Return the edges on some path from node 0 to node 3 whose operations are all other than `none`."""
        present = [edge for edge, operation in self.operations.items() if operation != "none"]
        reached, useful = {0}, {NODES - 1}
        for source, target in present:  # sorted by target: a source is decided before its edges are met
            if source in reached:
                reached.add(target)
        for source, target in sorted(present, reverse=True):
            if target in useful:
                useful.add(source)
        return tuple((source, target) for source, target in present if source in reached and target in useful)

    def pruned(self) -> "CellGenotype":
        """Return the same network with `none` on every dead edge: what is built, and what is compared."""
        live = self.live_edges()
        return CellGenotype({edge: op if edge in live else "none" for edge, op in self.operations.items()})

    def canonical(self) -> "CellGenotype":
        """Return the one cell that stands for all that are the same network, whose weights can be copied one to one.

        Dead edges are `none`, and neither the numbers of the nodes nor skips that only pass a node on make a
        difference; see `cell_forms.exact_form`.
        """
        operations = first_of_each_form(OPERATIONS)[tuple(self.operations.values())]
        return CellGenotype(dict(zip(EDGES, operations, strict=True)))

    def expression(self) -> str:
        """Return the expression by which the benchmark tells cells apart: 6,466 differ; see `cell_forms`."""
        return published_form(tuple(self.operations.values()))

    def has_path(self) -> bool:
        """Return whether anything of the input arrives at the output."""
        return bool(self.live_edges())


def canonical_edges(configuration: Configuration) -> Configuration:
    """Return a configuration with the canonical cell in place of its own; what is not an edge stays."""
    operations = tuple(str(configuration[name]) for name in EDGE_NAMES)
    canonical = first_of_each_form(OPERATIONS)[operations]
    if canonical == operations:
        return configuration
    return configuration.replace(**dict(zip(EDGE_NAMES, canonical, strict=True)))


def why_no_path(configuration: Configuration) -> str | None:
    """Return why the cell of a configuration cannot be trained, or None."""
    return None if CellGenotype.from_configuration(configuration).has_path() else NO_PATH
