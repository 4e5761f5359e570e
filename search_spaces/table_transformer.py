"""Transformers for rows of a table: each column is a token, and the columns of a row look at each other.

Source: Gorishniy et al. 2021, Revisiting Deep Learning Models for Tabular Data, arXiv 2106.11959, section 3.3 and
appendix E. Unlike there, weight decay spares only what has one dimension: it pulls at the tokens of columns, too.

Shapes: N rows, D numbers, C categories, L = 1 + D + C tokens, E features of a token, K classes.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from search_spaces.attention import attended
from search_spaces.shapes import TableShape
from search_spaces.table_layers import CategoryVectors, TableChain, check_sizes
from search_spaces.vision_transformer import Readout

__all__ = ["ColumnBlock", "ColumnTokens", "ReGLU", "table_transformer_network"]


class ColumnTokens(nn.Module):
    """Turns each column of a row into a token, and puts a token that stands for the whole row before them.

    The token of a number is the number times a vector, that of a category is its vector; to both is added a vector of
    the column. All of them are learned.

    Args:
        shape: the columns.
        width: E.

    Shapes: numbers_ND (N, D) float, categories_NC (N, C) int64 -> tokens_NLE.

    Source: section 3.3, Feature Tokenizer; the beginning is that of the authors' code.
    """

    def __init__(self, shape: TableShape, width: int) -> None:
        """Draw the vectors."""
        super().__init__()
        self.scales_DE = nn.Parameter(_drawn(shape.numbers, width)) if shape.numbers else None
        self.vectors = CategoryVectors(shape.categories, width) if shape.categories else None
        if self.vectors is not None:
            nn.init.uniform_(self.vectors.weight, -(width**-0.5), width**-0.5)
        self.columns_TE = nn.Parameter(_drawn(shape.numbers + len(shape.categories), width))
        self.row_token_E = nn.Parameter(_drawn(width))

    def forward(self, numbers_ND: Tensor, categories_NC: Tensor) -> Tensor:
        """Make the tokens."""
        parts = [] if self.scales_DE is None else [numbers_ND.unsqueeze(2) * self.scales_DE]
        if self.vectors is not None:
            parts.append(self.vectors(categories_NC))
        columns_NTE = torch.cat(parts, dim=1) + self.columns_TE
        first_N1E = self.row_token_E.to(columns_NTE.dtype).expand(len(columns_NTE), 1, -1)
        return torch.cat([first_N1E, columns_NTE], dim=1)


class ReGLU(nn.Module):
    """One half of the features, as far as the other half is positive; shapes: (..., 2F) -> (..., F).

    Source: Shazeer 2020, GLU Variants Improve Transformer, arXiv 2002.05202, equation 5.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Multiply the halves."""
        values, gates = x.chunk(2, dim=-1)
        return values * functional.relu(gates)


class ColumnBlock(nn.Module):
    """Attention over the columns and then a small network for each of them; both add to what was there.

    Args:
        heads: number of heads.
        head_width: features of a head; E = heads * head_width.
        expansion: how many times wider the hidden layer of the small network is.
        attention_dropout: share of the pairs of columns that do not see each other while training, in [0, 1).
        hidden_dropout: share of the hidden layer that is dropped while training, in [0, 1).
        residual_dropout: share of both additions that is dropped while training, in [0, 1).
        is_first: the first block does not normalise what it attends to, without which it learns worse (appendix E).

    Shapes: tokens_NLE (N, L, E) -> the same.
    """

    def __init__(
        self,
        heads: int,
        head_width: int,
        expansion: float,
        *,
        attention_dropout: float = 0.0,
        hidden_dropout: float = 0.0,
        residual_dropout: float = 0.0,
        is_first: bool = False,
    ) -> None:
        """Build both parts."""
        super().__init__()
        width = heads * head_width
        hidden = max(1, round(expansion * width))
        self.heads = heads
        self.attention_dropout = attention_dropout
        self.queries_keys_values = nn.Sequential(
            nn.Identity() if is_first else nn.LayerNorm(width), nn.Linear(width, 3 * width)
        )
        self.attention_out = nn.Linear(width, width)
        self.each_token = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 2 * hidden),
            ReGLU(),
            nn.Dropout(hidden_dropout),
            nn.Linear(hidden, width),
        )
        self.dropped = nn.Dropout(residual_dropout)

    def forward(self, tokens_NLE: Tensor) -> Tensor:
        """Let the columns look at each other, then think for themselves."""
        dropout = self.attention_dropout if self.training else 0.0
        seen_NLE = attended(self.queries_keys_values(tokens_NLE), self.heads, dropout=dropout)
        tokens_NLE = tokens_NLE + self.dropped(self.attention_out(seen_NLE))
        changed: Tensor = tokens_NLE + self.dropped(self.each_token(tokens_NLE))
        return changed


def table_transformer_network(
    shape: TableShape,
    num_outputs: int,
    *,
    depth: int,
    heads: int,
    head_width: int,
    expansion: float,
    attention_dropout: float = 0.0,
    hidden_dropout: float = 0.0,
    residual_dropout: float = 0.0,
) -> TableChain:
    """Chain the tokens of the columns, blocks, and a head that reads the token of the row.

    Args:
        shape: the columns.
        num_outputs: K, or 1 for a number.
        depth: number of blocks, at least 1.
        heads: heads of each block.
        head_width: features of a head.
        expansion: see `ColumnBlock`; above 0.
        attention_dropout: see `ColumnBlock`.
        hidden_dropout: see `ColumnBlock`.
        residual_dropout: see `ColumnBlock`.

    Shapes: numbers_ND, categories_NC -> (N, K).

    Raises:
        ValueError: there is no column, or a size is not positive.
    """
    check_sizes(shape, num_outputs=num_outputs, depth=depth, heads=heads, head_width=head_width)
    width = heads * head_width
    blocks = [
        ColumnBlock(
            heads,
            head_width,
            expansion,
            attention_dropout=attention_dropout,
            hidden_dropout=hidden_dropout,
            residual_dropout=residual_dropout,
            is_first=index == 0,
        )
        for index in range(depth)
    ]
    return TableChain(
        tokens=ColumnTokens(shape, width),
        blocks=nn.Sequential(*blocks),
        readout=Readout("class_token"),
        head=nn.Sequential(nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, num_outputs)),
    )


def _drawn(*shape: int) -> Tensor:
    """Uniform within the inverse of the square root of the last size, as PyTorch begins a linear layer."""
    bound = shape[-1] ** -0.5
    return torch.empty(*shape).uniform_(-bound, bound)
