"""Convolutional networks for texts: which short sequences of tokens occur, wherever they stand.

Shapes: N texts, L tokens of the longest, E features of a token, F filters, K classes.
"""

from collections import OrderedDict
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from search_spaces.shapes import TextShape
from search_spaces.text_layers import TokenEmbedding, features_and_mask

__all__ = ["TextConvolutions", "text_convolution_network"]


class TextConvolutions(nn.Module):
    """Filters of several widths side by side; of each filter the strongest response of a text is kept.

    A window that reaches over an end of the text sees zeros there, as far as half its width.

    Args:
        width: E.
        filters: F, for each window.
        windows: how many tokens the filters see at a time.

    Shapes: marked (N, L, E + 1) -> responses_NC (N, F * number of windows), 0 or above.

    Source: Kim 2014, arXiv 1408.5882, section 2.
    """

    def __init__(self, width: int, filters: int, windows: Sequence[int]) -> None:
        """Make a convolution for each window."""
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv1d(width, filters, window, padding=window // 2) for window in windows)

    def forward(self, marked: Tensor) -> Tensor:
        """Convolve and keep the strongest responses; those beyond the end of a text do not count."""
        features_NLE, mask_NL = features_and_mask(marked)
        features_NEL = features_NLE.transpose(1, 2)
        length = features_NEL.shape[2]
        strongest = []
        for convolution in self.convolutions:
            responses_NFL = convolution(features_NEL)[:, :, :length].relu()  # an even window gives one more
            strongest.append((responses_NFL * mask_NL.unsqueeze(1)).amax(dim=2))
        return torch.cat(strongest, dim=1)


def text_convolution_network(
    input_shape: TextShape,
    num_classes: int,
    *,
    width: int,
    filters: int,
    windows: Sequence[int],
    input_dropout: float = 0.0,
    dropout: float = 0.0,
) -> nn.Sequential:
    """Chain embedding, convolutions and a linear head.

    Args:
        input_shape: the vocabulary is what counts.
        num_classes: number of logits K.
        width: features of a token.
        filters: filters of each window.
        windows: how many tokens the filters see at a time, one number for each group of filters.
        input_dropout: share of the tokens' features that is dropped while training, in [0, 1).
        dropout: share of the head's inputs that is dropped while training, in [0, 1).

    Shapes: tokens_NL (N, L) int64 -> logits_NK (N, K), unnormalised.
    """
    parts: dict[str, nn.Module] = {
        "embedding": TokenEmbedding(input_shape.vocabulary, width, dropout=input_dropout),
        "convolutions": TextConvolutions(width, filters, windows),
        "dropout": nn.Dropout(dropout),
        "head": nn.Linear(filters * len(windows), num_classes),
    }
    return nn.Sequential(OrderedDict(parts))
