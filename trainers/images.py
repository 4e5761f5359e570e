"""Images on the device that trains on them: bytes, from which batches are picked and normalised."""

from collections.abc import Iterator, Sequence

import torch

from trainers.data.arrays import ImageData, ImageSplit
from trainers.data.image_changes import Drawn
from trainers.problem import Batch
from trainers.resident import pick, shared_tensor

__all__ = ["DeviceImages"]


class DeviceImages:
    """One split in the memory of a device; on a CPU it shares the memory of the arrays.

    All images stay there as bytes, so an epoch needs no worker processes and moves nothing but indices.
    """

    def __init__(self, split: ImageSplit, data: ImageData, device: torch.device) -> None:
        self._images_NCHW = shared_tensor(split.images_NCHW).to(device)
        self._labels_N = shared_tensor(split.labels_N).to(device)
        self._mean_C11 = torch.tensor(data.mean, dtype=torch.float32, device=device).view(-1, 1, 1)
        self._scale_C11 = torch.tensor(data.std, dtype=torch.float32, device=device).reciprocal().view(-1, 1, 1)

    def __len__(self) -> int:
        return len(self._labels_N)

    def batches(self, parts: Sequence[slice]) -> Iterator[Batch]:
        """Yield the images of each slice, unchanged."""
        for part in parts:
            yield self.take(part)

    def take(self, items: torch.Tensor | slice, changes: Sequence[Drawn] = ()) -> Batch:
        """Return some images, changed and then normalised by the training split, with their labels.

        Args:
            items: (n,) int64 indices on the device, or a slice.
            changes: made to these images one after the other.

        Shapes: -> images_nCHW (n, C, H, W) float32, labels_n (n,) int64; both are the caller's own or not written to.
        """
        images_nCHW = pick(self._images_NCHW, items).to(torch.float32).mul_(1.0 / 255.0)
        for change in changes:
            images_nCHW = change.apply(images_nCHW)
        return Batch((images_nCHW.sub_(self._mean_C11).mul_(self._scale_C11),), pick(self._labels_N, items))
