"""Items of a torch dataset as tensors: each drawn from generators of its own, and put together to batches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import torch
from torch.utils.data import Dataset, default_collate, get_worker_info

from trainers.errors import UserCodeError
from trainers.feeding.generators import seed_generators
from trainers.loader_errors import cuda_in_item
from trainers.seeds import Purpose, torch_seed

__all__ = ["Collate", "Collation", "Key", "KeyPlan", "SeededItems", "read_item"]

Collate: TypeAlias = Callable[[Sequence[Any]], Any]
"""Puts items together: (inputs, targets)."""


class Key(NamedTuple):
    """Which item is asked for, and what its random changes depend on.

    Attributes:
        item: its number in the dataset.
        epoch: counted from 1; 0 for items that are only measured.
        position: place in the order of the epoch.
    """

    item: int
    epoch: int
    position: int


class KeyPlan(Sequence[list[Key]]):
    """The keys of each batch, made when they are asked for: an epoch may have millions.

    Args:
        order: the indices of the items, in the order of the epoch; on the host.
        parts: for each batch the places in the order that it takes.
        epoch: of all keys.
    """

    def __init__(self, order: torch.Tensor, parts: Sequence[torch.Tensor | slice], epoch: int) -> None:
        self._order, self._parts, self._epoch = order, parts, epoch
        self._places = torch.arange(len(order))

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, batch: Any) -> Any:
        part = self._parts[batch]
        found = zip(self._order[part].tolist(), self._places[part].tolist(), strict=True)
        return [Key(item, self._epoch, place) for item, place in found]


class SeededItems(Dataset[Any]):
    """Seeds the global generators before each item.

    What a dataset draws then depends on the seed, the epoch and the item's position alone: not on the process that
    reads it, so that no two processes draw alike, nor on how many there are.

    Args:
        dataset: a person's own.
        seed: of the trial.
    """

    def __init__(self, dataset: Any, seed: int) -> None:
        self.dataset, self._seed = dataset, seed

    def __getitem__(self, key: Key) -> Any:
        seed_generators(torch_seed(Purpose.ITEMS, self._seed, key.epoch, key.position))
        return read_item(self.dataset, key.item)


def read_item(dataset: Any, number: int) -> Any:
    """Return an item of a dataset.

    Raises:
        UserCodeError: it asks for CUDA in a process without it; errors of a worker are told by who reads its batches.
    """
    try:
        return dataset[number]
    except Exception as error:
        advice = None if get_worker_info() is not None else cuda_in_item(error, dataset)
        if advice is None:
            raise
        raise UserCodeError(advice) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Collation:
    """How items become a batch, in the process that has read them.

    Numbers become float32 and int64, as networks and losses take them.

    Attributes:
        own: a person's own way; None: each part of the items is stacked.
        is_flat: whether a target of one number may come as (1,), too.
    """

    own: Collate | None = None
    is_flat: bool = False

    def __call__(self, items: Sequence[Any]) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
        """Return inputs and targets, on the CPU; plain tuples, which torch can pin.

        Raises:
            UserCodeError: the items are no (input, target), or cannot be put together.
        """
        if self.own is not None:
            inputs, targets = _pair(self.own(items))
        else:
            pairs = [_pair(item) for item in items]
            inputs = default_collate([_parts(part) for part, _ in pairs])
            targets = default_collate([target for _, target in pairs])
        parts, truth = tuple(_tensor(part) for part in _parts(inputs)), _tensor(targets)
        if truth.dtype == torch.bool:
            truth = truth.to(torch.int64)
        if self.is_flat and truth.numel() == len(truth):
            truth = truth.reshape(-1)
        if sizes := {len(part) for part in (*parts, truth)} - {len(items)}:
            raise UserCodeError(
                f"{len(items)} items of the dataset make a batch whose parts have {sorted(sizes)} items"
            )
        return parts, truth


def _pair(item: Any) -> tuple[Any, Any]:
    if isinstance(item, tuple | list) and len(item) == 2:
        return item[0], item[1]
    what = f"{len(item)} values" if isinstance(item, tuple | list) else f"a {type(item).__name__}"
    raise UserCodeError(f"an item of the dataset is {what}; needed: (input, target), or ((input, input, ..), target)")


def _parts(inputs: Any) -> tuple[Any, ...]:
    return tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)


def _tensor(value: Any) -> torch.Tensor:
    if not isinstance(value, torch.Tensor):
        while isinstance(value, tuple | list) and value:  # what cannot be stacked stays in a row
            value = value[0]
        raise UserCodeError(
            f"the items of the dataset hold a {type(value).__name__}; needed: tensors, arrays or numbers"
        )
    if value.is_floating_point():
        return value.to(torch.float32)
    return value if value.dtype == torch.bool or value.is_complex() else value.to(torch.int64)
