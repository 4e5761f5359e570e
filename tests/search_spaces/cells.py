"""Cells as the tests write and draw them."""

from hypothesis import strategies as st

from search_spaces import JsonScalar
from search_spaces.genotype import EDGES, OPERATIONS, CellGenotype

ANY_CELL = st.tuples(*[st.sampled_from(OPERATIONS)] * len(EDGES)).map(
    lambda operations: CellGenotype(dict(zip(EDGES, operations, strict=True)))
)
CELL_WITH_PATH = ANY_CELL.filter(CellGenotype.has_path)

TRAINING: dict[str, JsonScalar] = {
    "optimizer": "adamw",
    "learning_rate": 0.01,
    "weight_decay": 1e-4,
    "batch_size": 64,
    "label_smoothing": 0.0,
    "augmentation": 0.0,
}


def cell(**operations: str) -> CellGenotype:
    """Return the cell of `e12="conv3x3"`, ...; all other edges are `none`."""
    named = {(int(name[1]), int(name[2])): operation for name, operation in operations.items()}
    return CellGenotype({edge: named.get(edge, "none") for edge in EDGES})


def uniform_cell(operation: str) -> CellGenotype:
    """Return the cell with one operation on every edge."""
    return CellGenotype(dict.fromkeys(EDGES, operation))


def configuration(genotype: CellGenotype, channels: int = 16, cells_per_stage: int = 1) -> dict[str, JsonScalar]:
    """Return a configuration of `nas_small` with this cell."""
    size: dict[str, JsonScalar] = {"channels": channels, "cells_per_stage": cells_per_stage, "dropout": 0.0}
    return genotype.to_configuration() | size | TRAINING
