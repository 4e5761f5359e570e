"""What ranks have in common that share each batch, and compute their part of it with the whole network."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

from trainers.data.batches import micro_batches, shard
from trainers.distributed import Ranks
from trainers.parallel.base import Backward, BatchLoss, Parallel
from trainers.parallel.optimizer_state import load_optimizer_state
from trainers.precision import MixedPrecision
from trainers.problem import Batch

__all__ = ["DataParallel"]


class DataParallel(Parallel):
    """Each rank computes its share of every batch; the ranks' gradients are averaged in the last pass of a step.

    Args:
        network: on this rank's device, with equal weights on every rank.
        ranks: the ranks.
        precision: in which the forward pass computes.
        example: one training item.
    """

    def __init__(self, network: nn.Module, ranks: Ranks, precision: MixedPrecision, example: Batch) -> None:
        self.network = network
        self._ranks, self._precision, self._example = ranks, precision, example

    @abstractmethod
    def _passes(self, parts: int, items: int) -> int:
        """Return how many passes this rank makes in a step, those without items among them; at least one.

        Args:
            parts: micro-batches of this rank.
            items: of the whole global batch.
        """

    @abstractmethod
    def _gradients(self, joined: bool) -> AbstractContextManager[None]:
        """Return the context of a pass: only the last one of a step joins the ranks' gradients."""

    @property
    def _model(self) -> nn.Module:
        """What trains: the network, in its wrapper where there is one."""
        return self.network

    def parts(self, batch: slice, micro_batch: int) -> list[slice]:
        """Return this rank's share of a global batch, cut into micro-batches."""
        return micro_batches(batch, micro_batch, self._ranks.rank, self._ranks.world_size)

    def train_batch(
        self,
        batches: Iterator[Batch],
        parts: int,
        items: int,
        loss_of: BatchLoss,
        backward: Backward,
    ) -> torch.Tensor:
        """Gather the gradient of the mean loss over a global batch; see `Parallel.train_batch`."""
        # The ranks' gradients are averaged, so each rank's share of the mean is taken `world_size` times.
        weight = self._ranks.world_size / items
        sums = []
        passes = self._passes(parts, items)
        for index in range(passes):
            if index >= parts:
                with self._gradients(joined=index == passes - 1):
                    self._backward_without_items(backward)
                continue
            batch = next(batches)
            with self._gradients(joined=index == passes - 1):
                losses_N = loss_of(self._answers(self._model, batch), batch)
                backward(losses_N, weight)
            sums.append(losses_N.detach().sum())
        return sums[0] if len(sums) == 1 else sum(sums, torch.zeros((), device=self._ranks.device))

    def network_state(self) -> Mapping[str, torch.Tensor]:
        """Return weights and buffers by name; they are those in use, and of what is cut this rank's parts (DTensor)."""
        return self.network.state_dict()

    def optimizer_state(self, optimizer: torch.optim.Optimizer) -> Mapping[str, Any]:
        """Return the state of an optimizer, with this rank's parts of what is cut (DTensor)."""
        return optimizer.state_dict()

    def load_optimizer(self, optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
        """Take over the state of an optimizer, whole or cut: of what is cut here, this rank's parts."""
        load_optimizer_state(optimizer, state)

    def _answers(self, network: nn.Module, batch: Batch) -> torch.Tensor:
        """Return the answers of the network, or of what wraps it, to a batch."""
        with self._precision.autocast():
            answers: torch.Tensor = network(*batch.inputs)
        return answers

    def _backward_without_items(self, backward: Backward) -> None:
        """Take part in joining the gradients with zeros, when there is no item for this rank.

        Evaluation mode keeps the item out of the statistics of batch normalisation.
        """
        self._model.eval()
        backward(self._answers(self._model, self._example).float(), 0.0)
        self._model.train()

    def _own_share(self, items: int, items_per_pass: int) -> list[slice]:
        """Return this rank's share of the items of a split, cut into passes."""
        own = shard(items, self._ranks.rank, self._ranks.world_size)
        return [slice(at, min(at + items_per_pass, own.stop)) for at in range(own.start, own.stop, items_per_pass)]
