"""Every rank holds the whole network and computes its share of each batch: one rank alone, or DistributedDataParallel.

Source: Li et al. 2020, PyTorch Distributed, arXiv 2006.15704.
"""

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from trainers.artifact_files import Location
from trainers.checkpoint import Checkpoint, read_checkpoint
from trainers.clipping import norm_of
from trainers.config import BatchNorm, GradientCompression
from trainers.distributed import Ranks
from trainers.networks import unused_weights
from trainers.parallel.compression import average_in_bf16
from trainers.parallel.data_parallel import DataParallel
from trainers.precision import MixedPrecision
from trainers.problem import Batch, Items, Meter

__all__ = ["Replicas"]

logger = logging.getLogger(__name__)


class Replicas(DataParallel):
    """A copy of the network on every rank; gradients are averaged while the last micro-batch goes backward.

    Args:
        network: on this rank's device, with equal weights on every rank.
        ranks: the ranks.
        precision: in which the forward pass computes.
        example: one training item.
        micro_batch: most items that all ranks together compute at a time.
        batch_norm: whose items batch normalisation takes the statistics of.
        compression: in which format gradients are exchanged.

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
        compression: GradientCompression = "none",
    ) -> None:
        super().__init__(network, ranks, precision, example, micro_batch, batch_norm)
        self._weights = list(network.parameters())
        self._compression = compression
        self._joined: DistributedDataParallel | None = None
        self.used = "ddp" if ranks.world_size > 1 else "none"

    def connect(self) -> None:
        """Wrap the network, so that gradients are averaged; nothing for a single rank."""
        super().connect()
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
        super().disconnect()
        self._joined = None

    def gradient_norm(self) -> torch.Tensor:
        """Return the norm of the averaged gradient."""
        return norm_of([weight.grad for weight in self._weights if weight.grad is not None])

    def end_epoch(self) -> None:
        """Average the statistics of batch normalisation, and compare weights and buffers."""
        self._ranks.average_buffers(self.network)
        self._ranks.check_equal(self.network)

    def measure(self, items: Items, items_per_pass: int, meter: Meter) -> dict[str, float]:
        """Let each rank answer its own share of the items.

        The network is called without any wrapper, so ranks with unequal shares do not wait for each other on the way.
        """
        self.network.eval()
        with self._ranks.together("validation"), torch.no_grad():
            for batch in items.batches(self._own_share(len(items), items_per_pass)):
                meter.add(self._answers(self.network, batch), batch.targets)
        return meter.total(self._ranks)

    def load_network(self, state: Mapping[str, torch.Tensor]) -> None:
        """Take over weights and buffers."""
        self.network.load_state_dict(state)

    def read_checkpoint(self, location: Location) -> Checkpoint:
        """Read a whole checkpoint onto this rank's device."""
        return read_checkpoint(location, self._ranks.device)

    @property
    def _model(self) -> nn.Module:
        """What trains: the network, in its wrapper where there is one."""
        return self._joined if self._joined is not None else self.network

    def _gradients(self, joined: bool) -> AbstractContextManager[None]:
        """Return the context of a pass: DDP joins the gradients while it goes backward, unless it is told not to."""
        if self._joined is None or joined:
            return nullcontext()
        context: AbstractContextManager[None] = self._joined.no_sync()
        return context
