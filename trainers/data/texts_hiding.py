"""Hides random tokens of training texts, so that a network does not lean on single ones.

What is hidden depends on the epoch and on a text's position in it alone, so it does not depend on how many ranks or
micro-batches share a batch.
"""

from dataclasses import dataclass

import numpy as np
import torch

__all__ = ["HiddenTokens", "draw_hidden_tokens"]

LOT = 2**16
"""Number of draws that all texts of an epoch share, each from a random place on."""


@dataclass(frozen=True, slots=True)
class HiddenTokens:
    """Which tokens of N texts are hidden.

    Attributes:
        is_hidden_D: draws, one after the other; behind the last comes the first.
        starts_N: at which draw the first token of each text is.
    """

    is_hidden_D: torch.Tensor
    starts_N: torch.Tensor

    def at(self, items: torch.Tensor | slice, length: int) -> torch.Tensor:
        """Return (n, length) bool: whether each of the first tokens of some of the texts is hidden."""
        places_nL = self.starts_N[items].unsqueeze(1) + torch.arange(length, device=self.starts_N.device)
        return self.is_hidden_D[places_nL % LOT]

    def to(self, device: torch.device) -> "HiddenTokens":
        """Return the same on a device."""
        return HiddenTokens(self.is_hidden_D.to(device), self.starts_N.to(device))


def draw_hidden_tokens(items: int, share: float, generator: np.random.Generator) -> HiddenTokens:
    """Draw which tokens of N texts are hidden, each with the same probability.

    Args:
        items: N.
        share: the probability, in [0, 1].
        generator: `LOT` numbers and one for each text are taken from it.

    Raises:
        ValueError: the share is outside [0, 1].

    Source: Iyyer et al. 2015, Deep Unordered Composition Rivals Syntactic Methods, section 3.1; there the words are
        left out, here they become the unknown word, so that the others keep their places.
    """
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"the share {share} of hidden tokens is outside [0, 1]")
    is_hidden_D = generator.random(LOT) < share
    return HiddenTokens(torch.from_numpy(is_hidden_D), torch.from_numpy(generator.integers(LOT, size=items)))
