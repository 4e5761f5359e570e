"""Mixes each training image with another one of its global batch, by mixup or CutMix, and its class likewise.

The other one is at another place of the same batch, by a permutation that is drawn for the epoch; so it may lie on
another rank or in another micro-batch, and each rank makes the partners that it lacks for itself.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from trainers.config import TrainConfig
from trainers.methods.cutmix import cutmix, draw_boxes
from trainers.methods.method import MixingMethod
from trainers.methods.mixup import draw_shares, mixup
from trainers.problem import Batch
from trainers.seeds import Purpose, random_generator

__all__ = ["Fetch", "Mixing", "draw_partners", "mix_classes", "mixed_batches"]

Fetch = Callable[[Sequence[torch.Tensor | slice]], Iterator[Batch]]
"""Makes the training items at some places of an epoch's order."""


class Mixing(MixingMethod):
    """Mixup, CutMix, or for each batch one of both at random.

    Args:
        training: `mixup` and `cutmix`, of which one at least is above 0, and the seed.
        num_classes: K.
    """

    def __init__(self, training: TrainConfig, num_classes: int) -> None:
        self._training, self._num_classes = training, num_classes
        self._partners_N = torch.empty(0, dtype=torch.int64)
        self._is_cut_N = np.empty(0, dtype=np.bool_)
        self._share_N = self._boxes_N4 = torch.empty(0)

    def begin_epoch(self, epoch: int, batches: Sequence[slice], device: torch.device) -> None:
        """Draw partners, shares and rectangles for all places of the epoch's order."""
        training, items = self._training, batches[-1].stop
        generator = random_generator(Purpose.MIXING, training.seed, epoch)
        self._partners_N = draw_partners(batches, generator)
        coins = generator.random(len(batches))
        likelihood = 0.0 if training.cutmix == 0.0 else 1.0 if training.mixup == 0.0 else 0.5
        self._is_cut_N = np.repeat(coins < likelihood, [batch.stop - batch.start for batch in batches])
        if training.mixup > 0.0:
            self._share_N = draw_shares(items, training.mixup, generator).to(device)
        if training.cutmix > 0.0:
            self._boxes_N4 = draw_boxes(items, training.cutmix, generator).to(device)

    def partners(self, part: slice) -> torch.Tensor:
        """Return for each position of a micro-batch the position of the item that it is mixed with; on the host."""
        return self._partners_N[part]

    def mix(self, batch: Batch, partners: Batch, part: slice) -> Batch:
        """Return the images of a micro-batch mixed with their partners, and shares of the classes."""
        (images,), (others,) = batch.inputs, partners.inputs
        if self._is_cut_N[part.start]:
            mixed, share_N = cutmix(images, others, self._boxes_N4[part])
        else:
            share_N = self._share_N[part]
            mixed = mixup(images, others, share_N)
        return Batch((mixed,), mix_classes(batch.targets, partners.targets, share_N, self._num_classes))


def draw_partners(batches: Sequence[slice], generator: np.random.Generator) -> torch.Tensor:
    """Permute the positions of each batch; an item may stay where it is, and is not mixed then.

    Returns:
        (N,) int64: for each position of the epoch's order that of its partner.
    """
    orders = [batch.start + generator.permutation(batch.stop - batch.start) for batch in batches]
    return torch.from_numpy(np.concatenate(orders).astype(np.int64, copy=False))


def mix_classes(
    targets_N: torch.Tensor, partners_N: torch.Tensor, share_N: torch.Tensor, num_classes: int
) -> torch.Tensor:
    """Return the shares of the classes of mixed items.

    Args:
        targets_N: their own classes, int64.
        partners_N: the classes of their partners.
        share_N: how much of each is its own, float32.
        num_classes: K.

    Returns:
        (N, K) float32; each row sums to 1.
    """
    shares_NK = torch.zeros(len(targets_N), num_classes, device=share_N.device)
    shares_NK.scatter_add_(1, targets_N.unsqueeze(1), share_N.unsqueeze(1))
    return shares_NK.scatter_add_(1, partners_N.unsqueeze(1), 1.0 - share_N.unsqueeze(1))


def mixed_batches(mixing: MixingMethod, parts: Sequence[slice], fetch: Fetch) -> Iterator[Batch]:
    """Yield micro-batches, each mixed with its partners.

    Partners are made once more, since they may be elsewhere, unless all of them are in the micro-batch itself: so it
    is when one rank computes whole batches.
    """
    plan = [(part, others, _holds(part, others)) for part, others in ((part, mixing.partners(part)) for part in parts)]
    wanted = list[torch.Tensor | slice]()
    for part, others, is_whole in plan:
        wanted += [part] if is_whole else [part, others]
    batches = fetch(wanted)
    for part, others, is_whole in plan:
        batch = next(batches)
        yield mixing.mix(batch, _rows(batch, others - part.start) if is_whole else next(batches), part)


def _holds(part: slice, positions: torch.Tensor) -> bool:
    return bool(positions.min() >= part.start) and bool(positions.max() < part.stop)


def _rows(batch: Batch, rows: torch.Tensor) -> Batch:
    return Batch(tuple(part[rows] for part in batch.inputs), batch.targets[rows])
