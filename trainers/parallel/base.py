"""The plug point of parallel training: who holds which weights, and who computes which part of a batch."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import torch
from torch import nn

from trainers.problem import Batch, Items, Meter

__all__ = ["BatchLoss", "Parallel"]

BatchLoss: TypeAlias = Callable[[torch.Tensor, Batch], torch.Tensor]
"""Turns the answers to a batch into the sum of its items' losses."""


class Parallel(ABC):
    """One rank's share in a network.

    The life of a training: construction (on every rank, with equal weights), `load_network` when it is resumed,
    `connect`, then batches; `disconnect` at the end, also after an error.

    Attributes:
        network: the part of the network whose weights this rank moves; the optimizer is made over its parameters.
    """

    network: nn.Module

    @abstractmethod
    def connect(self) -> None:
        """Join the ranks; a collective. `disconnect` must follow before the groups close."""

    @abstractmethod
    def disconnect(self) -> None:
        """Drop what joins the ranks."""

    @abstractmethod
    def parts(self, batch: slice, micro_batch: int) -> list[slice]:
        """Return the micro-batches of a global batch that this rank computes, as slices of the epoch's order."""

    @abstractmethod
    def train_batch(
        self,
        batches: Iterator[Batch],
        parts: int,
        items: int,
        loss_of: BatchLoss,
        backward: Callable[[torch.Tensor], None],
    ) -> torch.Tensor:
        """Gather the gradient of the mean loss over a global batch, equal on all ranks that hold a weight.

        Args:
            batches: gives this rank's micro-batches; each is made when it is asked for.
            parts: how many to take; 0 where the batch is too small for this rank to have a share.
            items: of the whole global batch.
            loss_of: gives the sum of the losses of a micro-batch.
            backward: adds the gradients of a loss.

        Returns:
            The sum of the losses of this rank's items, so that the sum over all ranks is that of the batch.
        """

    @abstractmethod
    def gradient_norm(self) -> torch.Tensor:
        """Return the norm of the whole network's gradient, the same on all ranks."""

    @abstractmethod
    def end_epoch(self) -> None:
        """Make buffers equal on all ranks, and check that weights are.

        Raises:
            RanksDivergedError: they are not.
        """

    @abstractmethod
    def measure(self, items: Items, items_per_pass: int, meter: Meter) -> dict[str, float]:
        """Return the metrics of a split over all ranks, each item counted once.

        Raises:
            PeerFailedError: another rank's network failed.
        """

    @abstractmethod
    def network_state(self) -> Mapping[str, torch.Tensor]:
        """Return weights and buffers of the whole network by name; a collective where they are spread over ranks."""

    @abstractmethod
    def load_network(self, state: Mapping[str, torch.Tensor]) -> None:
        """Take over the weights and buffers of a whole network."""

    @abstractmethod
    def optimizer_state(self, optimizer: torch.optim.Optimizer) -> Mapping[str, Any]:
        """Return the whole state of an optimizer, however its weights are spread."""

    @abstractmethod
    def load_optimizer(self, optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
        """Take over the whole state of an optimizer."""
