"""The plug point of training methods: where in a step one may interfere."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

from trainers.problem import Batch

__all__ = ["AveragingMethod", "Method", "MixingMethod"]


class Method:
    """One training method; the hooks come in the order of a step, and each does nothing unless it is overridden.

    All ranks call the same hooks in the same order, and what a hook does to an item depends on the seed, the epoch
    and the item's position alone, so that any number of ranks and micro-batches trains alike.
    """

    def begin_epoch(self, epoch: int, batches: Sequence[slice], device: torch.device) -> None:
        """Draw what is random in an epoch.

        Args:
            epoch: counted from 1.
            batches: the global batches, slices of the epoch's order.
            device: where draws are used.
        """

    def losses(self, batch: Batch, answers: torch.Tensor, losses_N: torch.Tensor) -> torch.Tensor:
        """Return the losses of the items, changed; outside of autocast, so that they stay float32."""
        return losses_N

    @torch.no_grad()
    def before_step(self, network: nn.Module) -> None:
        """Change the gradients of the whole batch, which all ranks hold, before they are clipped."""

    @torch.no_grad()
    def after_step(self, network: nn.Module) -> None:
        """See the new weights of an optimizer step that was made."""

    def state_dict(self) -> dict[str, Any]:
        """Return what must be kept in a checkpoint: tensors and plain values."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""


class MixingMethod(Method):
    """A method that mixes each item with another one of the same global batch; a training has one at most."""

    @abstractmethod
    def partners(self, part: slice) -> torch.Tensor:
        """Return for each position of a micro-batch the position of the item that it is mixed with; on the host."""

    @abstractmethod
    def mix(self, batch: Batch, partners: Batch, part: slice) -> Batch:
        """Return the items of a micro-batch mixed with their partners."""


class AveragingMethod(Method):
    """A method that keeps other weights than those in training, to be measured and kept; there is one at most."""

    @abstractmethod
    def averaged(self, network: nn.Module) -> AbstractContextManager[None]:
        """Return a context in which the network has the averaged weights and buffers, and afterwards its own again.

        What becomes of them within the context is kept in the averages: at the end of an epoch the ranks make the
        statistics of batch normalisation equal in it.
        """

    @abstractmethod
    def go_on_from(self, network: nn.Module) -> None:
        """Take the weights and buffers of a network for the averages, when a training is resumed."""
