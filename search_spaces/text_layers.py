"""Layers of networks that read texts, such that the answer to a text does not depend on how far its batch is filled up.

Texts of a batch are filled up with token 0 to the length of the longest. What passes from layer to layer is a
`marked` tensor: its last channel is 1 where there is a token and 0 where the text is filled up, all other channels
are features. So a network is a plain chain of layers, each with one argument, and can be cut anywhere.

Shapes: N texts, L tokens of the longest, V the vocabulary, E features of a token.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["FILLING", "MaskedMean", "TokenEmbedding", "features_and_mask", "with_added"]

FILLING = 0
"""The token that fills up short texts."""


class TokenEmbedding(nn.Module):
    """Gives each token, and where asked for each position, a vector that is learned.

    Args:
        vocabulary: V; token 0 fills up short texts and has no vector.
        width: E.
        positions: most tokens of a text, where the place of a token counts; None: it does not.
        dropout: share of the features that is dropped while training, in [0, 1).

    Shapes: tokens_NL (N, L) int64 in [0, V), L at most `positions` -> marked (N, L, E + 1), all 0 beyond a text's end.
    """

    def __init__(self, vocabulary: int, width: int, *, positions: int | None = None, dropout: float = 0.0) -> None:
        """Draw the vectors."""
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width, padding_idx=FILLING)
        self.positions = None if positions is None else nn.Embedding(positions, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens_NL: Tensor) -> Tensor:
        """Look up the vectors and mark the tokens."""
        mask_NL1 = (tokens_NL != FILLING).unsqueeze(2)
        vectors_NLE = self.tokens(tokens_NL)
        if self.positions is not None:
            places_L = torch.arange(tokens_NL.shape[1], device=tokens_NL.device)
            vectors_NLE = (vectors_NLE + self.positions(places_L)) * mask_NL1
        return torch.cat([self.dropout(vectors_NLE), mask_NL1.to(vectors_NLE.dtype)], dim=2)


class MaskedMean(nn.Module):
    """The mean of a text's features over its tokens; shapes: marked (N, L, E + 1) -> means_NE (N, E)."""

    def forward(self, marked: Tensor) -> Tensor:
        """Leave out where the text is filled up."""
        features_NLE, mask_NL = features_and_mask(marked)
        summed_NE = (features_NLE * mask_NL.unsqueeze(2)).sum(dim=1)
        return summed_NE / mask_NL.sum(dim=1, keepdim=True, dtype=summed_NE.dtype)


def features_and_mask(marked: Tensor) -> tuple[Tensor, Tensor]:
    """Take a marked tensor apart.

    Shapes: marked (N, L, E + 1) -> features_NLE (N, L, E), a view; mask_NL (N, L) bool, true where there is a token.
    """
    return marked[:, :, :-1], marked[:, :, -1] > 0.5


def with_added(marked: Tensor, change_NLE: Tensor) -> Tensor:
    """Add to the features of a marked tensor and leave the mark alone."""
    return marked + functional.pad(change_NLE, (0, 1))
