"""What ranks have in common that share each batch, and compute their part of it with the whole network."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from trainers.config import BatchNorm
from trainers.data.batches import micro_batches, shard
from trainers.distributed import Ranks
from trainers.parallel.base import Backward, BatchLoss, Parallel
from trainers.parallel.batch_norm import SharedStatistics, batch_norm_layers
from trainers.parallel.optimizer_state import load_optimizer_state
from trainers.precision import MixedPrecision
from trainers.problem import Batch

__all__ = ["DataParallel"]


class DataParallel(Parallel):
    """Each rank computes its share of every batch; the ranks' gradients are averaged in the last pass of a step.

    All ranks make the same passes through the network, with items or without.

    Args:
        network: on this rank's device, with equal weights on every rank.
        ranks: the ranks.
        precision: in which the forward pass computes.
        example: one training item.
        micro_batch: most items that all ranks together compute at a time.
        batch_norm: whose items batch normalisation takes the statistics of.

    Raises:
        UserCodeError: a layer's batch normalisation cannot be synchronised.
    """

    def __init__(
        self,
        network: nn.Module,
        ranks: Ranks,
        precision: MixedPrecision,
        example: Batch,
        micro_batch: int,
        batch_norm: BatchNorm = "local",
    ) -> None:
        self.network = network
        self._ranks, self._precision, self._example, self._micro_batch = ranks, precision, example, micro_batch
        precision.expect_factor(ranks.world_size)  # see `train_batch`
        layers = batch_norm_layers(network) if batch_norm == "synchronised" and ranks.main is not None else []
        self._shared_statistics = SharedStatistics(layers, ranks.main)

    @abstractmethod
    def _gradients(self, joined: bool) -> AbstractContextManager[None]:
        """Return the context of a pass: only the last one of a step joins the ranks' gradients."""

    def connect(self) -> None:
        """Let the layers of batch normalisation use all ranks' items, where they are to."""
        self._shared_statistics.begin()

    def disconnect(self) -> None:
        """Let the layers of batch normalisation compute as they would alone."""
        self._shared_statistics.end()

    @property
    def _model(self) -> nn.Module:
        """What trains: the network, in its wrapper where there is one."""
        return self.network

    def parts(self, batch: slice) -> list[slice]:
        """Return this rank's share of each micro-batch of a global batch."""
        return micro_batches(batch, self._micro_batch, self._ranks.rank, self._ranks.world_size)

    def train_batch(
        self,
        batches: Iterator[Batch],
        parts: Sequence[slice],
        items: int,
        loss_of: BatchLoss,
        backward: Backward,
    ) -> torch.Tensor:
        """Gather the gradient of the mean loss over a global batch; see `Parallel.train_batch`."""
        # The ranks' gradients are averaged, so each rank's share of the mean is taken `world_size` times.
        weight = self._ranks.world_size / items
        sums = []
        for number, part in enumerate(parts, start=1):
            batch = next(batches) if part.start < part.stop else None
            with self._gradients(joined=number == len(parts)):
                if batch is None:
                    self._backward_without_items(backward)
                    continue
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

        The item that is computed in its place stays out of the statistics of batch normalisation.
        """
        with self._shared_statistics.without_items(self._model):
            backward(self._answers(self._model, self._example).float(), 0.0)

    def _own_share(self, items: int, items_per_pass: int) -> list[slice]:
        """Return this rank's share of the items of a split, cut into passes; none has a single item beside larger ones.

        Some normalisation has no spread of one item.
        """
        own = shard(items, self._ranks.rank, self._ranks.world_size)
        bounds = [*range(own.start, own.stop, items_per_pass), own.stop]
        if len(bounds) > 2 and items_per_pass > 2 and bounds[-1] - bounds[-2] == 1:
            bounds[-2] -= 1
        return [slice(start, stop) for start, stop in pairwise(bounds)]
