"""Rows of a table on the device that trains on them, from which batches are picked."""

from collections.abc import Iterator, Sequence

import torch

from trainers.data.tables import TableData, TableSplit
from trainers.problem import Batch
from trainers.resident import pick, shared_tensor

__all__ = ["DeviceRows"]


class DeviceRows:
    """One split in the memory of a device; on a CPU it shares the memory of the arrays, except for numbers to tell.

    Those are standardised by the training split, so that losses and learning rates mean the same for any unit.
    """

    def __init__(self, split: TableSplit, data: TableData, device: torch.device) -> None:
        self._numbers_ND = shared_tensor(split.numbers_ND).to(device)
        self._categories_NC = shared_tensor(split.categories_NC).to(device)
        targets_N = shared_tensor(split.targets_N)
        if data.kind == "numbers":
            targets_N = ((targets_N - data.target_mean) / data.target_scale).to(torch.float32)
        self._targets_N = targets_N.to(device)

    def __len__(self) -> int:
        return len(self._targets_N)

    def batches(self, parts: Sequence[slice]) -> Iterator[Batch]:
        """Yield the rows of each slice."""
        for part in parts:
            yield self.take(part)

    def take(self, rows: torch.Tensor | slice) -> Batch:
        """Return some rows with their targets.

        Args:
            rows: (n,) int64 indices on the device, or a slice.

        Shapes: -> numbers_nD float32, categories_nC int64, targets_n int64 or float32; not to be written to.
        """
        return Batch((pick(self._numbers_ND, rows), pick(self._categories_NC, rows)), pick(self._targets_N, rows))
