"""The text of the DARTS paper's code: `Genotype(normal=[('sep_conv_3x3', 0), ...], reduce=[...])`, read and written."""

import ast
from collections.abc import Mapping
from typing import Final

from search_spaces.darts_genotype import NODES, DartsCell, DartsGenotype, DartsNode

__all__ = ["genotype_text", "parse_genotype"]

_PAPER_NAMES: Final = {"skip": "skip_connect"}
"""Operation -> its name in the paper's code, where it has another one."""


def parse_genotype(text: str) -> DartsGenotype:
    """Read the form of the paper's code.

    Where it says which nodes the answer consists of, `normal_concat` and `reduce_concat`, these must be all four.

    Raises:
        ValueError: the text has another form, or describes cells that cannot be.

    Example:
        >>> text = "Genotype(normal=[" + "('sep_conv_3x3', 0), ('skip_connect', 1), " * 4 + "], reduce=["
        >>> genotype = parse_genotype(text + "('max_pool_3x3', 1), ('max_pool_3x3', 0), " * 4 + "])")
        >>> genotype.normal.nodes[3]
        DartsNode(sources=(0, 1), operations=('sep_conv_3x3', 'skip'))
    """
    parts = _keywords(text)
    wrong = [
        f"{name}={parts[name]}; the answer is nodes {list(NODES)}"
        for name in ("normal_concat", "reduce_concat")
        if name in parts and parts[name] != list(NODES)
    ]
    if wrong:
        raise ValueError(f"DARTS genotype: {'; '.join(wrong)}")
    return DartsGenotype(normal=_cell_of(parts, "normal"), reduction=_cell_of(parts, "reduce"))


def genotype_text(genotype: DartsGenotype) -> str:
    """Return the form that `parse_genotype` reads, with the names of the paper's code."""
    cells = (("normal", genotype.normal), ("reduce", genotype.reduction))
    parts = [f"{name}={_edges(cell)}, {name}_concat={list(NODES)}" for name, cell in cells]
    return f"Genotype({', '.join(parts)})"


def _keywords(text: str) -> dict[str, object]:
    """Return the arguments of the text `Genotype(name=value, ...)`; `range(2, 6)` is read as a list."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError("no call with named arguments")
        return {str(part.arg): _value(part.value) for part in call.keywords}
    except (SyntaxError, TypeError, ValueError) as error:
        form = "Genotype(normal=[('sep_conv_3x3', 0), ...], reduce=[...])"
        raise ValueError(f"DARTS genotype {text!r}: {error}; form: {form}") from error


def _value(node: ast.expr) -> object:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        return list(range(*(ast.literal_eval(part) for part in node.args)))
    return ast.literal_eval(node)


def _cell_of(parts: Mapping[str, object], name: str) -> DartsCell:
    edges = parts.get(name)
    if not isinstance(edges, list) or len(edges) != 2 * len(NODES) or not all(_is_edge(edge) for edge in edges):
        raise ValueError(f"DARTS genotype: {name}={edges!r}; give {2 * len(NODES)} pairs ('operation', source)")
    ours = {theirs: name for name, theirs in _PAPER_NAMES.items()}
    pairs = [(source, ours.get(operation, operation)) for operation, source in edges]
    nodes = []
    for first, second in zip(pairs[::2], pairs[1::2], strict=True):
        (low, before), (high, after) = sorted((first, second))
        nodes.append(DartsNode((low, high), (before, after)))
    return DartsCell(tuple(nodes))


def _edges(cell: DartsCell) -> list[tuple[str, int]]:
    """Return the paper's list of (operation, source)."""
    pairs = [pair for node in cell.nodes for pair in zip(node.operations, node.sources, strict=True)]
    return [(_PAPER_NAMES.get(operation, operation), source) for operation, source in pairs]


def _is_edge(edge: object) -> bool:
    return isinstance(edge, tuple) and len(edge) == 2 and isinstance(edge[0], str) and isinstance(edge[1], int)
