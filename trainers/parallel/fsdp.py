"""Every rank holds a part of each weight, its gradient and its optimizer state, and computes its share of a batch.

The weights of a part of the network are gathered for the moment in which it computes, and given back. So every pass
through the network is a collective, and all ranks make the same number of them, with items or without.

Source: Zhao et al. 2023, PyTorch FSDP, arXiv 2304.11277, in the form of torch's `fully_shard`, which cuts each weight
along its first dimension.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor import empty as empty_shards

from trainers.artifact_files import Location
from trainers.checkpoint import Checkpoint, read_checkpoint
from trainers.config import BatchNorm
from trainers.distributed import Ranks
from trainers.errors import UserCodeError
from trainers.optimizers.sharded import shard_like
from trainers.parallel.data_parallel import DataParallel
from trainers.parallel.held_errors import HeldErrors
from trainers.precision import MixedPrecision
from trainers.problem import Batch, Items, Meter

__all__ = ["UNIT_WEIGHTS", "FullySharded", "units"]

UNIT_WEIGHTS = 2**20
"""Parts of a network with fewer weights are not gathered by themselves: each gathering has a fixed cost."""


class FullySharded(DataParallel):
    """A network whose weights are cut over the ranks.

    Passes compute under autocast with weights that are gathered in float32, as `Replicas` does, so that a configuration
    means the same in both. FSDP's own mixed precision would gather half as many bytes, but normalisation would compute
    in the low format, too. The gradients of micro-batches are added up whole on each rank, and are averaged and cut
    while the last one goes backward.

    Args:
        network: on the CPU or on this rank's device, with equal weights on every rank; it is changed in place. Its
            parts are moved to the device and cut one after the other, so that the whole of it is never there.
        ranks: at least two.
        precision: in which the forward pass computes.
        example: one training item.
        micro_batch: most items that all ranks together compute at a time.
        batch_norm: whose items batch normalisation takes the statistics of.
        unit_weights: least number of weights that are gathered by themselves; see `units`.

    Raises:
        UserCodeError: the network has weights that cannot be cut, or a layer's batch normalisation cannot be
            synchronised.
    """

    used = "fsdp"

    def __init__(
        self,
        network: nn.Module,
        ranks: Ranks,
        precision: MixedPrecision,
        example: Batch,
        micro_batch: int,
        batch_norm: BatchNorm = "local",
        unit_weights: int | None = None,
    ) -> None:
        assert ranks.main is not None, "a single rank has nothing to share"
        _check_weights(network)
        super().__init__(network, ranks, precision, example, micro_batch, batch_norm)
        self._mesh = DeviceMesh.from_group(ranks.main, ranks.device.type)
        for unit in units(network, UNIT_WEIGHTS if unit_weights is None else unit_weights):
            fully_shard(unit, mesh=self._mesh)
        self._root: FSDPModule = fully_shard(network, mesh=self._mesh)

    def gradient_norm(self) -> torch.Tensor:
        """Return the norm of the averaged gradient; a collective."""
        gradients = [weight.grad for weight in self.network.parameters() if weight.grad is not None]
        norm = nn.utils.get_total_norm(gradients, foreach=True)
        return norm.full_tensor() if isinstance(norm, DTensor) else norm

    def end_epoch(self) -> None:
        """Average the statistics of batch normalisation; a weight has one holder, so there is nothing to compare."""
        self._ranks.average_buffers(self.network)

    def measure(self, items: Items, items_per_pass: int, meter: Meter) -> dict[str, float]:
        """Let each rank answer its own share of the items; ranks with fewer make passes whose answers do not count."""
        parts, held = self._own_share(len(items), items_per_pass), HeldErrors()
        batches = iter(items.batches(parts))
        self.network.eval()
        try:
            with torch.no_grad():
                for number in range(self._most_passes(len(items), items_per_pass)):
                    batch: Batch | None = None
                    with held.hold():
                        batch = next(batches) if number < len(parts) and not held else None
                    answers = self._answers(self.network, self._example if batch is None else batch)
                    if batch is not None:
                        with held.hold():
                            meter.add(answers, batch.targets)
        finally:
            self._root.reshard()  # without a backward pass the outermost weights stay gathered
        with self._ranks.together("validation"):
            held.check()
        return meter.total(self._ranks)

    def load_network(self, state: Mapping[str, torch.Tensor]) -> None:
        """Take over this rank's parts of weights, whole or cut, and buffers."""
        own = self.network.state_dict()
        self.network.load_state_dict(
            {name: shard_like(value, own[name]) if name in own else value for name, value in state.items()}
        )

    def read_checkpoint(self, location: Location) -> Checkpoint:
        """Read a checkpoint; of what was spread over ranks, however many, this rank's parts only."""
        return read_checkpoint(location, room=self._room)

    def _most_passes(self, items: int, items_per_pass: int) -> int:
        """Return how many passes the rank with the largest share of some items needs."""
        largest = -(-items // self._ranks.world_size)
        return -(-largest // items_per_pass)

    def _gradients(self, joined: bool) -> AbstractContextManager[None]:
        self._root.set_requires_gradient_sync(joined)
        return nullcontext()

    def _room(self, shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
        return empty_shards(*shape, dtype=dtype, device_mesh=self._mesh, placements=[Shard(0)])


def units(network: nn.Module, least: int) -> list[nn.Module]:
    """Choose the parts of a network whose weights are gathered together, inner ones first.

    They are members of lists and sequences of modules: the layers or blocks that a network computes one after the
    other. All other weights are gathered with the whole network. So are weights that a part shares with others.

    Args:
        network: is looked at only.
        least: number of weights, besides those of parts within, from which on it is worth a gathering.
    """
    uses = _uses(network)
    chosen: list[nn.Module] = []
    taken: set[nn.Parameter] = set()
    # Each list comes after those that it lies in; backwards, inner ones are first.
    for container in reversed(list(network.modules())):
        if not isinstance(container, nn.Sequential | nn.ModuleList):
            continue
        for part in container.children():
            inside = _uses(part)
            weights = set(inside) - taken
            is_called = not isinstance(part, nn.ModuleList | nn.ModuleDict)
            is_alone = all(inside[weight] == uses[weight] for weight in weights)
            if is_called and is_alone and sum(weight.numel() for weight in weights) >= least:
                chosen.append(part)
                taken |= weights
    return chosen


def _uses(network: nn.Module) -> Counter[nn.Parameter]:
    """Count in how many modules' places each weight is."""
    return Counter(weight for _, weight in network.named_parameters(remove_duplicate=False))


def _check_weights(network: nn.Module) -> None:
    names = [name for name, weight in network.named_parameters() if weight.dim() == 0]
    if names:
        raise UserCodeError(
            f"fsdp cannot cut weights without a dimension: {', '.join(names)}; give them the shape (1,), or use "
            "parallel=ddp"
        )
