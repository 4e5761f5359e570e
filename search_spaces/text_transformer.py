"""Transformer encoders for texts: every token looks at every other one of its text.

Shapes: N texts, L tokens of the longest, E features of a token, K classes.
"""

from collections import OrderedDict

from torch import Tensor, nn

from search_spaces.attention import attended
from search_spaces.inheritance import silence
from search_spaces.shapes import TextShape
from search_spaces.stochastic_depth import StochasticDepth, linear_rule
from search_spaces.text_layers import MaskedMean, TokenEmbedding, features_and_mask, with_added

__all__ = ["EncoderBlock", "text_transformer_network"]


class EncoderBlock(nn.Module):
    """Attention over the text and then a small network for each token; both add to what was there.

    The normalisation comes first in both, which trains without care for the first steps.

    Args:
        width: E.
        heads: H; must divide the width.
        expansion: how many times wider the hidden layer of the small network is.
        dropout: share of the additions that is dropped while training, in [0, 1).
        drop_part: likelihood with which a text goes without either part while training, in [0, 1).

    Shapes: marked (N, L, E + 1) -> marked (N, L, E + 1).

    Source: Vaswani et al. 2017, arXiv 1706.03762, section 3; Xiong et al. 2020, arXiv 2002.04745, figure 1 (b).
    """

    def __init__(self, width: int, heads: int, expansion: int, dropout: float, drop_part: float = 0.0) -> None:
        """Build both parts."""
        super().__init__()
        if width % heads:
            raise ValueError(f"{heads} heads do not divide a width of {width}")
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.each_token = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, expansion * width),
            nn.GELU(),
            nn.Linear(expansion * width, width),
        )
        self.dropped = nn.Sequential(nn.Dropout(dropout), StochasticDepth(drop_part))

    def forward(self, marked: Tensor) -> Tensor:
        """Let the tokens look at each other, then think for themselves."""
        features_NLE, mask_NL = features_and_mask(marked)
        marked = with_added(marked, self.dropped(self._attend(self.attention_norm(features_NLE), mask_NL)))
        features_NLE, _ = features_and_mask(marked)
        return with_added(marked, self.dropped(self.each_token(features_NLE)))

    def start_as_identity(self) -> bool:
        """Let both parts add nothing at first."""
        return silence(self.attention_out) and silence(self.each_token)

    def _attend(self, features_NLE: Tensor, mask_NL: Tensor) -> Tensor:
        mixed_NLE = attended(self.queries_keys_values(features_NLE), self.heads, mask_NL)
        answers: Tensor = self.attention_out(mixed_NLE)
        return answers


def text_transformer_network(
    input_shape: TextShape,
    num_classes: int,
    *,
    depth: int,
    width: int,
    heads: int,
    expansion: int,
    dropout: float = 0.0,
    stochastic_depth: float = 0.0,
) -> nn.Sequential:
    """Chain embedding, blocks, normalisation, mean over the tokens and a linear head.

    Args:
        input_shape: the longest text and the vocabulary.
        num_classes: number of logits K.
        depth: number of blocks.
        width: features of a token, E.
        heads: heads of each block; must divide the width.
        expansion: see `EncoderBlock`.
        dropout: share of the features that is dropped while training, in [0, 1).
        stochastic_depth: `drop_part` of the last block; it rises linearly to that (`linear_rule`).

    Shapes: tokens_NL (N, L) int64 -> logits_NK (N, K), unnormalised.
    """
    drops = linear_rule(depth, stochastic_depth)
    parts: dict[str, nn.Module] = {
        "embedding": TokenEmbedding(input_shape.vocabulary, width, positions=input_shape.length, dropout=dropout),
        "blocks": nn.Sequential(*(EncoderBlock(width, heads, expansion, dropout, drop) for drop in drops)),
        "mean": MaskedMean(),
        "head": nn.Sequential(nn.LayerNorm(width), nn.Dropout(dropout), nn.Linear(width, num_classes)),
    }
    return nn.Sequential(OrderedDict(parts))
