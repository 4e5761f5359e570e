"""Attention without weights of its own: what networks for texts and for images do with queries, keys and values.

Shapes: N items, L tokens, E features of a token, H heads, D = E / H features of a head.
"""

from torch import Tensor
from torch.nn import functional

__all__ = ["attended"]


def attended(queries_keys_values: Tensor, heads: int, mask_NL: Tensor | None = None, *, dropout: float = 0.0) -> Tensor:
    """Return for each token the mean of all values, weighted by how well its query fits their keys.

    Args:
        queries_keys_values: one beside the other, (N, L, 3E).
        heads: H; must divide E.
        mask_NL: bool, true for the tokens that are looked at; None: all are.
        dropout: share of the pairs that do not see each other, also outside of training, in [0, 1).

    Shapes: (N, L, 3E) -> (N, L, E).

    Source: Vaswani et al. 2017, arXiv 1706.03762, equation 1 and section 3.2.2.
    """
    batch, length, triple = queries_keys_values.shape
    # (N, L, 3E) -> three of (N, H, L, D)
    parts = queries_keys_values.view(batch, length, 3, heads, triple // (3 * heads))
    queries, keys, values = parts.permute(2, 0, 3, 1, 4)
    mask = None if mask_NL is None else mask_NL[:, None, None, :]
    mixed_NHLD = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, dropout_p=dropout)
    return mixed_NHLD.transpose(1, 2).reshape(batch, length, triple // 3)
