"""Residual networks for rows of a table: blocks of two fully connected layers, each of which adds to what was there.

Source: Gorishniy et al. 2021, Revisiting Deep Learning Models for Tabular Data, arXiv 2106.11959, section 3.2. The
normalisation may also be that of layers, which does not depend on the other rows of a batch.

Shapes: N rows, F features, K classes.
"""

from torch import Tensor, nn

from search_spaces.inheritance import silence
from search_spaces.shapes import TableShape
from search_spaces.table_layers import NORMS, TableChain, TableInput, check_sizes

__all__ = ["RowBlock", "table_residual_network"]


class RowBlock(nn.Module):
    """Adds a branch to a row's features: normalisation, a wide layer, and one that is as wide as the row again.

    Args:
        width: F.
        expansion: how many times wider the hidden layer is.
        norm: one of `NORMS`.
        hidden_dropout: share of the hidden layer that is dropped while training, in [0, 1).
        residual_dropout: share of the addition that is dropped while training, in [0, 1).

    Shapes: x_NF (N, F) -> (N, F).
    """

    def __init__(
        self, width: int, expansion: int, norm: str, hidden_dropout: float = 0.0, residual_dropout: float = 0.0
    ) -> None:
        """Build the branch."""
        super().__init__()
        self.branch = nn.Sequential(
            NORMS[norm](width),
            nn.Linear(width, expansion * width),
            nn.ReLU(),
            nn.Dropout(hidden_dropout),
            nn.Linear(expansion * width, width),
            nn.Dropout(residual_dropout),
        )

    def forward(self, x_NF: Tensor) -> Tensor:
        """Add the branch."""
        changed: Tensor = x_NF + self.branch(x_NF)
        return changed

    def start_as_identity(self) -> bool:
        """Let the branch add nothing at first."""
        return silence(self.branch)


def table_residual_network(
    shape: TableShape,
    num_outputs: int,
    *,
    depth: int,
    width: int,
    expansion: int,
    embedding: int,
    norm: str = "batch",
    hidden_dropout: float = 0.0,
    residual_dropout: float = 0.0,
) -> TableChain:
    """Chain the columns, a linear layer, blocks, and a head behind a last normalisation.

    Args:
        shape: the columns.
        num_outputs: K, or 1 for a number.
        depth: number of blocks, at least 1.
        width: F, features between the blocks.
        expansion: see `RowBlock`.
        embedding: features of a category.
        norm: one of `NORMS`; in the paper `batch`.
        hidden_dropout: see `RowBlock`.
        residual_dropout: see `RowBlock`.

    Shapes: numbers_ND, categories_NC -> (N, K).

    Raises:
        ValueError: there is no column, or a size is not positive.
    """
    check_sizes(shape, num_outputs=num_outputs, depth=depth, width=width, expansion=expansion, embedding=embedding)
    columns = TableInput(shape, embedding)
    blocks = [RowBlock(width, expansion, norm, hidden_dropout, residual_dropout) for _ in range(depth)]
    return TableChain(
        input=columns,
        first=nn.Linear(columns.features, width),
        blocks=nn.Sequential(*blocks),
        head=nn.Sequential(NORMS[norm](width), nn.ReLU(), nn.Linear(width, num_outputs)),
    )
