"""Every rank holds the whole network and computes its share of each batch: one rank alone, or DistributedDataParallel.

Source: Li et al. 2020, PyTorch Distributed, arXiv 2006.15704.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from trainers.artifact_files import Location
from trainers.checkpoint import Checkpoint, read_checkpoint
from trainers.config import GradientCompression
from trainers.data.batches import micro_batches, shard
from trainers.distributed import Ranks
from trainers.networks import unused_weights
from trainers.parallel.base import BatchLoss, Parallel
from trainers.parallel.compression import average_in_bf16
from trainers.parallel.passes import answers_of, backward_without_items, load_optimizer_state
from trainers.precision import MixedPrecision
from trainers.problem import Batch, Items, Meter

__all__ = ["Replicas"]

logger = logging.getLogger(__name__)


class Replicas(Parallel):
    """A copy of the network on every rank; gradients are averaged while the last micro-batch goes backward.

    Args:
        network: on this rank's device, with equal weights on every rank.
        ranks: the ranks.
        precision: in which the forward pass computes.
        example: one training item.
        compression: in which format gradients are exchanged.
    """

    def __init__(
        self,
        network: nn.Module,
        ranks: Ranks,
        precision: MixedPrecision,
        example: Batch,
        compression: GradientCompression = "none",
    ) -> None:
        self.network = network
        self._ranks, self._precision, self._example = ranks, precision, example
        self._compression = compression
        self._joined: DistributedDataParallel | None = None
        self.used = "ddp" if ranks.world_size > 1 else "none"

    def connect(self) -> None:
        """Wrap the network, so that gradients are averaged; nothing for a single rank."""
        if self._ranks.world_size == 1:
            return
        unused = unused_weights(self.network, self._example.inputs)
        if unused:
            logger.warning("weights without a gradient names=%s", ",".join(unused))
        device = self._ranks.device
        self._joined = DistributedDataParallel(
            self.network,
            device_ids=[device] if device.type == "cuda" else None,
            process_group=self._ranks.main,
            forward_sync_buffers=False,  # buffers are made equal once per epoch
            gradient_as_bucket_view=True,
            # Not `static_graph`: measured on two CPU ranks it gains nothing where all weights are used. Where some are
            # not, it saves a tenth to a fifth of a step's work, but wants a graph that never changes, and no one item
            # tells that of a network.
            find_unused_parameters=bool(unused),
        )
        if self._compression == "bf16":
            self._joined.register_comm_hook(self._ranks.main, average_in_bf16)

    def disconnect(self) -> None:
        """Drop the wrapper that joins the gradients."""
        self._joined = None

    def parts(self, batch: slice, micro_batch: int) -> list[slice]:
        """Return this rank's share of a global batch, cut into micro-batches."""
        return micro_batches(batch, micro_batch, self._ranks.rank, self._ranks.world_size)

    def train_batch(
        self,
        batches: Iterator[Batch],
        parts: int,
        items: int,
        loss_of: BatchLoss,
        backward: Callable[[torch.Tensor], None],
    ) -> torch.Tensor:
        """Gather the gradient of the mean loss over a global batch; see `Parallel.train_batch`."""
        # The ranks' gradients are averaged, so each rank's share of the mean is taken `world_size` times.
        weight = self._ranks.world_size / items
        total = torch.zeros((), device=self._ranks.device)
        for part in range(parts):
            batch = next(batches)
            with self._gradients(joined=part == parts - 1):
                loss = loss_of(answers_of(self._model, batch, self._precision), batch)
                backward(loss * weight)
            total += loss.detach()
        if parts == 0:
            backward_without_items(self._model, self._example, self._precision, backward)
        return total

    def gradient_norm(self) -> torch.Tensor:
        """Return the norm of the averaged gradient."""
        gradients = [weight.grad for weight in self.network.parameters() if weight.grad is not None]
        return nn.utils.get_total_norm(gradients, foreach=True)

    def end_epoch(self) -> None:
        """Average the statistics of batch normalisation, and compare weights and buffers."""
        self._ranks.average_buffers(self.network)
        self._ranks.check_equal(self.network)

    def measure(self, items: Items, items_per_pass: int, meter: Meter) -> dict[str, float]:
        """Let each rank answer its own share of the items.

        The network is called without any wrapper, so ranks with unequal shares do not wait for each other on the way.
        """
        own = shard(len(items), self._ranks.rank, self._ranks.world_size)
        passes = [slice(at, min(at + items_per_pass, own.stop)) for at in range(own.start, own.stop, items_per_pass)]
        self.network.eval()
        with self._ranks.together("validation"), torch.no_grad():
            for batch in items.batches(passes):
                meter.add(answers_of(self.network, batch, self._precision), batch.targets)
        return meter.total(self._ranks)

    def network_state(self) -> Mapping[str, torch.Tensor]:
        """Return weights and buffers by name; they are those in use."""
        return self.network.state_dict()

    def load_network(self, state: Mapping[str, torch.Tensor]) -> None:
        """Take over weights and buffers."""
        self.network.load_state_dict(state)

    def optimizer_state(self, optimizer: torch.optim.Optimizer) -> Mapping[str, Any]:
        """Return the state of an optimizer, which each rank holds whole."""
        return optimizer.state_dict()

    def load_optimizer(self, optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
        """Take over the state of an optimizer."""
        load_optimizer_state(optimizer, state)

    def read_checkpoint(self, location: Location) -> Checkpoint:
        """Read a whole checkpoint onto this rank's device."""
        return read_checkpoint(location, self._ranks.device)

    @property
    def _model(self) -> nn.Module:
        """What trains: the network, in its wrapper where there is one."""
        return self._joined if self._joined is not None else self.network

    def _gradients(self, joined: bool) -> AbstractContextManager[None]:
        """Return the context of a micro-batch: only the last one of a step joins the ranks' gradients."""
        if self._joined is None or joined:
            return nullcontext()
        context: AbstractContextManager[None] = self._joined.no_sync()
        return context
