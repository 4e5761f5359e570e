"""Texts on the device that trains on them: all tokens in a row, from which filled-up batches are picked."""

from collections.abc import Iterator, Sequence

import torch

from trainers.data.texts import TextSplit
from trainers.data.tokenizer import FILLING
from trainers.problem import Batch
from trainers.resident import pick, shared_tensor

__all__ = ["DeviceTexts"]

LENGTH_STEP = 8
"""Batches are filled up to a multiple of this, so that few shapes occur."""


class DeviceTexts:
    """One split in the memory of a device; on a CPU it shares the memory of the arrays.

    Args:
        split: the texts.
        longest: most tokens that a batch may have.
        device: where they are put.
    """

    def __init__(self, split: TextSplit, longest: int, device: torch.device) -> None:
        self.lengths_N = torch.from_numpy(split.lengths_N)
        self._longest = longest
        self._tokens_T = shared_tensor(split.tokens_T).to(device)
        self._ends_N = shared_tensor(split.ends_N).to(device)
        self._starts_N = self._ends_N - self.lengths_N.to(device)
        self._labels_N = shared_tensor(split.labels_N).to(device)
        self._places_L = torch.arange(longest, device=device)

    def __len__(self) -> int:
        return len(self._labels_N)

    def batches(self, parts: Sequence[slice]) -> Iterator[Batch]:
        """Yield the texts of each slice."""
        for part in parts:
            yield self.take(part, self.room(self.lengths_N[part]))

    def room(self, lengths_n: torch.Tensor) -> int:
        """Return how many tokens a batch of texts of these lengths, which lie on the CPU, is filled up to."""
        longest = int(lengths_n.max())
        return min(self._longest, LENGTH_STEP * -(-longest // LENGTH_STEP))

    def take(self, items: torch.Tensor | slice, length: int) -> Batch:
        """Return some texts with their labels.

        Args:
            items: (n,) int64 indices on the device, or a slice.
            length: tokens that each text is filled up to; no text has more.

        Shapes: -> tokens_nL (n, length) int64, labels_n (n,) int64; both are the caller's own or not written to.
        """
        places_nL = pick(self._starts_N, items).unsqueeze(1) + self._places_L[:length]
        is_text_nL = places_nL < pick(self._ends_N, items).unsqueeze(1)
        flat_places = places_nL.clamp_(max=len(self._tokens_T) - 1).view(-1)
        tokens_nL = pick(self._tokens_T, flat_places).to(torch.int64).view(places_nL.shape)
        return Batch((torch.where(is_text_nL, tokens_nL, FILLING),), pick(self._labels_N, items))
