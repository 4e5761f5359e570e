"""Reads the items of a dataset batch by batch, in this process or in workers of torch's DataLoader."""

import logging
import multiprocessing
import os
import re
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any, TypeAlias

import torch
from torch.utils.data import DataLoader

from trainers.errors import TrialError
from trainers.feeding.generators import kept_generators
from trainers.feeding.items import Collation, Key, SeededItems
from trainers.feeding.targets import TargetCheck
from trainers.problem import Batch

__all__ = ["ItemReader", "SharedMemoryError", "shared_memory_bytes"]

_PREFETCHED = 2
"""Batches that a worker reads ahead: torch's default."""
_SHARED_MEMORY = "/dev/shm"
_IS_SHORT_OF_IT = re.compile(r"bus error|out of shared memory|unable to (write|allocate|resize|open).*shm|/torch_\d+")
"""What torch says, in lower case, when its workers cannot get shared memory."""

_Pair: TypeAlias = tuple[Sequence[torch.Tensor], torch.Tensor]
"""Inputs and targets."""

_log = logging.getLogger(__name__)


class SharedMemoryError(TrialError):
    """The workers of a loader have no room to hand their batches over."""

    cause = "oom"


class ItemReader:
    """Reads batches of one dataset.

    Args:
        dataset: anything with items by number.
        seed: of the trial.
        workers: processes that read; 0: this one does.
        device: where batches are put.
        collation: how items become a batch.
        check: which targets they may have; None: any.
    """

    def __init__(
        self,
        dataset: Any,
        *,
        seed: int,
        workers: int,
        device: torch.device,
        collation: Collation | None = None,
        check: TargetCheck | None = None,
    ) -> None:
        self._items, self._collate, self._check = SeededItems(dataset, seed), collation or Collation(), check
        self._workers, self._device = workers, device

    def read(self, plan: Sequence[Sequence[Key]]) -> Iterator[Batch]:
        """Yield a batch for each list of keys, each read when its turn comes near.

        Raises:
            UserCodeError: items make no batch.
            BadDataError: items have targets that are not allowed.
            SharedMemoryError: workers cannot hand their batches over.
        """
        workers = min(self._workers, len(plan))
        if workers and not self._has_room(plan, workers):
            workers = 0
        # Closed at once after an error of ours, too: its traceback would keep the workers.
        with closing(self._read_here(plan) if workers == 0 else self._read_in_workers(plan, workers)) as batches:
            for number, (inputs, targets) in enumerate(batches):
                if self._check is not None:
                    targets = self._check.checked(targets, partial(_items_of, plan, number))
                yield self._on_device(inputs, targets)

    def _read_here(self, plan: Sequence[Sequence[Key]]) -> Generator[_Pair]:
        for keys in plan:
            with kept_generators():  # the layers of the network draw from them
                batch = self._collate([self._items[key] for key in keys])
            yield batch

    def _read_in_workers(self, plan: Sequence[Sequence[Key]], workers: int) -> Generator[_Pair]:
        loader = DataLoader(
            self._items,
            batch_sampler=plan,  # type: ignore[arg-type]  # our keys are no whole numbers
            num_workers=workers,
            collate_fn=self._collate,
            prefetch_factor=_PREFETCHED,
            pin_memory=self._device.type == "cuda",
            # Forked: what a person's file defines need not be found again by a new process.
            multiprocessing_context=multiprocessing.get_context("fork") if sys.platform == "linux" else None,
            generator=torch.Generator(),  # or it draws from the one of the layers
        )
        batches = iter(loader)
        try:
            yield from batches
        except (RuntimeError, OSError) as error:
            if _IS_SHORT_OF_IT.search(str(error).lower()) is None:
                raise
            raise SharedMemoryError(f"the workers of the loader have no shared memory left: {_advice()}") from error
        finally:
            # Otherwise they live for as long as anybody keeps the traceback of an error.
            batches._shutdown_workers()  # type: ignore[attr-defined]  # torch has no public way

    def _has_room(self, plan: Sequence[Sequence[Key]], workers: int) -> bool:
        """Whether the batches that are under way fit into shared memory; a worker without room is killed."""
        free = shared_memory_bytes()
        if free is None:
            return True
        keys = plan[0]  # the batches of an epoch are about equal
        with kept_generators():
            inputs, targets = self._collate([self._items[keys[0]]])
        size = len(keys) * sum(part.numel() * part.element_size() for part in (*inputs, targets))
        needed = size * (_PREFETCHED * workers + 1)
        if needed <= free:
            return True
        _log.warning(
            "%d loader workers need %.0f MiB of shared memory, so items are read without any; %s",
            workers, needed / 2**20, _advice(),
        )  # fmt: skip
        return False

    def _on_device(self, inputs: Sequence[torch.Tensor], targets: torch.Tensor) -> Batch:
        return Batch(
            inputs=tuple(part.to(self._device, non_blocking=True) for part in inputs),
            targets=targets.to(self._device, non_blocking=True),
        )


def _items_of(plan: Sequence[Sequence[Key]], batch: int) -> list[int]:
    return [key.item for key in plan[batch]]


def shared_memory_bytes() -> int | None:
    """Return the free bytes of the shared memory in which workers hand their batches over; None: unknown."""
    try:
        found = os.statvfs(_SHARED_MEMORY)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def _advice() -> str:
    free = shared_memory_bytes()
    size = "unknown" if free is None else f"{free / 2**20:.0f} MiB free"
    return f"{_SHARED_MEMORY} has {size}; give the container more (docker run --shm-size), or set fewer loader_workers"
