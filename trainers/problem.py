"""What a training needs to know of its task: batches, the loss of an answer, and what answers are worth.

The loop, the optimizer and the ranks are the same for images, texts and tables; a Problem is what differs.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import nn

from trainers.data.spec import SplitName
from trainers.distributed import Ranks
from trainers.networks import answered, repeated
from trainers.reporting import JsonValue

__all__ = ["Batch", "Items", "Meter", "Problem"]


@dataclass(frozen=True, slots=True)
class Batch:
    """Some items on the device that trains.

    Attributes:
        inputs: the arguments of the network; the first dimension of each counts the N items.
        targets: (N,) int64 classes, (N, K) float32 shares of the classes, or (N,) float32 numbers.
    """

    inputs: tuple[torch.Tensor, ...]
    targets: torch.Tensor

    def __len__(self) -> int:
        return len(self.targets)


class Items(Protocol):
    """One split that is only measured."""

    def __len__(self) -> int:
        """Number of items."""

    def batches(self, parts: Sequence[slice]) -> Iterator[Batch]:
        """Yield the items of each slice, unchanged and ready for the network."""


class Meter(Protocol):
    """Adds up the answers of one rank to the items of a split."""

    def add(self, answers: torch.Tensor, targets: torch.Tensor) -> None:
        """Count the answers to some items."""

    def total(self, ranks: Ranks) -> dict[str, float]:
        """Return the metrics of all ranks' items together; a collective, called by every rank."""

    def details(self) -> Mapping[str, JsonValue]:
        """Return what `total` has found beside the metrics, such as the confusion matrix; may be nothing."""


class Problem(ABC):
    """One data set as a training problem for networks on one device.

    Attributes:
        input_shape: what `build_model` of a search space is told about the inputs.
        num_outputs: numbers that the network answers for each item.
        fingerprint: identifies data and splits.
        training_items: number of items that one epoch trains.
        has_images: whether items are images in one tensor, which the configuration may have changed and mixed.
        reads_items: whether items are read one by one, by `loader_workers`; otherwise they lie in memory.
        own_changes: names of the parameters for changing images that have a meaning for these items, too.
    """

    input_shape: Any
    num_outputs: int
    fingerprint: str
    training_items: int
    has_images: bool = False
    reads_items: bool = False
    own_changes: frozenset[str] = frozenset()

    @abstractmethod
    def example(self) -> Batch:
        """Return one training item, unchanged; every call gives the same one."""

    @abstractmethod
    def training_batches(
        self, epoch: int, order: torch.Tensor, positions: Sequence[torch.Tensor | slice]
    ) -> Iterator[Batch]:
        """Yield the training items of an epoch, randomly changed where the configuration asks for it.

        What is changed and how depends on the seed, the epoch and an item's position in the order alone, so that it
        does not depend on how many ranks and micro-batches share a batch.

        Args:
            epoch: counted from 1.
            order: (items,) int64, on the device: the order of the epoch.
            positions: for each batch the places in the order that it takes; indices lie on the host.
        """

    @abstractmethod
    def items(self, split: SplitName) -> Items:
        """Return a split to measure on.

        Raises:
            BadDataError: there is no such split.
        """

    @abstractmethod
    def losses(self, answers: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the loss of each item: (N,) float32, whatever the number format of the answers."""

    @abstractmethod
    def meter(self) -> Meter:
        """Return an empty meter of this problem's metrics."""

    def check_network(self, network: nn.Module) -> Batch:
        """Try a network in evaluation mode, and return the smallest batch that it can answer.

        It is the example, or twice that: normalisation by the items of a batch alone, say, needs two.

        Raises:
            UserCodeError: its answer has a wrong form.
        """
        example = self.example()
        answers, times = answered(network, example.inputs)
        batch = Batch(repeated(example.inputs, times), *repeated((example.targets,), times))
        with torch.no_grad():
            self.check_answers(answers, batch)
        return batch

    @abstractmethod
    def check_answers(self, answers: object, batch: Batch) -> None:
        """Check what a network has answered to some training items.

        Raises:
            UserCodeError: it has a wrong form.
        """

    @abstractmethod
    def blueprint(self) -> Mapping[str, JsonValue]:
        """Return what turns raw inputs into the network's and its answers into words, for checkpoints."""

    @abstractmethod
    def facts(self) -> Mapping[str, JsonValue]:
        """Return what is worth knowing of the data beside a result, such as the share of the largest class."""

    @property
    def items_per_pass(self) -> int:
        """Items that are measured at a time; a function of their size alone, so that values repeat to the last bit."""
        values = sum(part[0].numel() for part in self.example().inputs)
        return min(512, max(1, 2**22 // max(1, values)))
