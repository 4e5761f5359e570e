"""Mixup: an input becomes the weighted mean of itself and another one, and its class follows.

Source: Zhang et al. 2018, mixup, arXiv 1710.09412, section 2, equation 1.
"""

import numpy as np
import torch

__all__ = ["draw_shares", "mixup"]


def draw_shares(items: int, alpha: float, generator: np.random.Generator) -> torch.Tensor:
    """Draw how much of itself each item keeps; the paper's own code draws one share for a whole batch.

    Args:
        items: N.
        alpha: both parameters of the Beta distribution, above 0; small ones mix little, 1 is uniform.
        generator: one share per item is taken from it.

    Returns:
        share_N, float32, in [0, 1].
    """
    return torch.from_numpy(generator.beta(alpha, alpha, items).astype(np.float32))


def mixup(inputs: torch.Tensor, partners: torch.Tensor, share_N: torch.Tensor) -> torch.Tensor:
    """Return `share * input + (1 - share) * partner` for each item.

    Args:
        inputs: (N, ...) floating point.
        partners: the inputs that they are mixed with, of the same shape.
        share_N: in [0, 1].
    """
    return torch.lerp(partners, inputs, share_N.view(-1, *[1] * (inputs.dim() - 1)))
