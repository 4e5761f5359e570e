"""The plug point of parallel training: who holds which weights, and who computes which part of a batch."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import nn

from trainers.artifact_files import Location
from trainers.checkpoint import Checkpoint, read_checkpoint
from trainers.problem import Batch, Items, Meter

__all__ = ["Backward", "BatchLoss", "Parallel"]

BatchLoss: TypeAlias = Callable[[torch.Tensor, Batch], torch.Tensor]
"""(answers, batch) -> losses_N, the loss of each item."""
Backward: TypeAlias = Callable[[torch.Tensor, float], None]
"""(losses, weight): adds the gradients of the sum of some losses, times a weight."""


class Parallel(ABC):
    """One rank's share in a network.

    The life of a training: construction (on every rank, with equal weights), `load_network` when it is resumed,
    `connect`, then batches; `disconnect` at the end, also after an error.

    Attributes:
        network: the part of the network whose weights this rank moves; the optimizer is made over its parameters.
        used: which way of sharing this is: `none`, `ddp`, `fsdp` or `pipeline`.
    """

    network: nn.Module
    used: str

    @abstractmethod
    def connect(self) -> None:
        """Join the ranks; a collective. `disconnect` must follow before the groups close."""

    @abstractmethod
    def disconnect(self) -> None:
        """Drop what joins the ranks."""

    def build_optimizer(self, build: Callable[[nn.Module], torch.optim.Optimizer]) -> torch.optim.Optimizer:
        """Return the optimizer of this rank.

        Args:
            build: makes an optimizer over the weights of a network.
        """
        return build(self.network)

    @abstractmethod
    def parts(self, batch: slice) -> list[slice]:
        """Return what this rank computes of each micro-batch of a global batch, as slices of the epoch's order.

        An empty one is a micro-batch that is too small for this rank to have a share.
        """

    @abstractmethod
    def train_batch(
        self,
        batches: Iterator[Batch],
        parts: Sequence[slice],
        items: int,
        loss_of: BatchLoss,
        backward: Backward,
    ) -> torch.Tensor:
        """Gather the gradient of the mean loss over a global batch, equal on all ranks that hold a weight.

        Args:
            batches: gives this rank's micro-batches, none for an empty part; each is made when it is asked for.
            parts: of the global batch, as `parts` returned them.
            items: of the whole global batch.
            loss_of: gives the losses of the items of a micro-batch.
            backward: adds the gradients of losses.

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
        """Return weights and buffers of the whole network by name, for a checkpoint; may be a collective.

        All of it on rank 0; what is cut over the ranks may stay so (torch's DTensor): then each rank has its part.
        """

    @abstractmethod
    def load_network(self, state: Mapping[str, torch.Tensor]) -> None:
        """Take over the weights and buffers of a whole network."""

    @abstractmethod
    def optimizer_state(self, optimizer: torch.optim.Optimizer) -> Mapping[str, Any]:
        """Return the whole state of an optimizer, however its weights are spread; see `network_state`."""

    @abstractmethod
    def load_optimizer(self, optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
        """Take over the whole state of an optimizer."""

    def read_checkpoint(self, location: Location) -> Checkpoint:
        """Read a checkpoint as `load_network` and `load_optimizer` take it; communicates nothing.

        Raises:
            DamagedCheckpointError: it is missing or damaged.
            ArtifactStoreError: the store of a URL does not give it.
        """
        return read_checkpoint(location)
