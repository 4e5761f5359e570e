"""Which items belong to which step: the order of an epoch, its global batches, and each rank's micro-batches.

All of it is arithmetic on (number of items, seed, epoch): every rank computes the same plan and takes its own
part, so the plan does not depend on the number of ranks, and a resumed training meets the same order.
"""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from trainers.seeds import Purpose, random_generator

__all__ = ["epoch_batches", "epoch_order", "micro_batches", "shard"]


def epoch_order(items: int, seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """Return the order in which the items 0 to `items` - 1 are trained in one epoch (counted from 1)."""
    return random_generator(Purpose.ORDER, seed, epoch).permutation(items).astype(np.int64, copy=False)


def epoch_batches(items: int, batch_size: int) -> list[slice]:
    """Cut an epoch into global batches: slices of the epoch's order, one per optimizer step.

    Every item is in one batch. All batches have `batch_size` items, except that the last is smaller; a rest
    of less than half a batch shares evenly with the batch before it, because the statistics of a few items
    (one, at worst) are of no use to batch normalisation.

    Raises:
        ValueError: a number is below 1.
    """
    if items < 1 or batch_size < 1:
        raise ValueError(f"items={items} and batch_size={batch_size} must be at least 1")
    bounds = [*range(0, items, batch_size), items]
    rest = items - bounds[-2]
    if len(bounds) > 2 and 2 * rest < batch_size:
        bounds[-2] -= (batch_size - rest) // 2
    return [slice(start, stop) for start, stop in pairwise(bounds)]


def shard(items: int, rank: int, world_size: int) -> slice:
    """Return one rank's contiguous share of `items` positions; the shares differ by at most one item."""
    return slice(items * rank // world_size, items * (rank + 1) // world_size)


def micro_batches(batch: slice, micro_batch: int, rank: int, world_size: int) -> list[slice]:
    """Cut a global batch into micro-batches of nearly equal size, and return one rank's share of each.

    Which items are computed at the same time does not depend on the number of ranks.

    Args:
        batch: a global batch, as a slice of the epoch's order; one item at least.
        micro_batch: most items of a micro-batch, over all ranks.
        rank: whose share.
        world_size: over how many ranks each micro-batch is cut.

    Returns:
        Slices of the epoch's order, as many for each rank; one is empty where a micro-batch has too few items for this
        rank to have a share.
    """
    items = batch.stop - batch.start
    parts = -(-items // micro_batch)
    size, larger = divmod(items, parts)  # larger ones first, as they go through a pipeline
    bounds = [batch.start + part * size + min(part, larger) for part in range(parts + 1)]
    shares = [(low, shard(high - low, rank, world_size)) for low, high in pairwise(bounds)]
    return [slice(low + share.start, low + share.stop) for low, share in shares]
