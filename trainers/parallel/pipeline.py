"""Each rank holds some consecutive layers of the network, and micro-batches flow from rank to rank.

For a network that is a chain of layers and does not fit one device. A global batch is not cut over the ranks: it is cut
into `accumulate` times as many micro-batches as there are ranks, so that the ranks work at the same time; each computes
forward and backward passes in turn. Batch normalisation sees the items of a micro-batch, as it does when one rank
accumulates as many.

Source: Huang et al. 2019, GPipe, arXiv 1811.06965; the order of the passes: Narayanan et al. 2019, PipeDream, section
    3.2 (one forward, one backward), here with one set of weights and a flush after every batch.
"""

import copy
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from trainers.distributed import Ranks
from trainers.parallel.base import Backward, BatchLoss, Parallel
from trainers.parallel.flow import Flow
from trainers.parallel.held_errors import HeldErrors
from trainers.parallel.optimizer_state import load_optimizer_state
from trainers.parallel.stages import Stage, chain_of, cut, hollow_copy, passages
from trainers.precision import MixedPrecision
from trainers.problem import Batch, Items, Meter

__all__ = ["Pipeline", "runs_of_equal_parts"]

MEASURED_PARTS = 4
"""Times as many passes as ranks flow through at a time when a split is measured."""


class Pipeline(Parallel):
    """One stage of a chain of layers on each rank, the first on rank 0.

    All ranks take all batches: the first needs the inputs, the last the targets, and each the shapes.

    Args:
        network: on the CPU or on this rank's device, with equal weights on every rank; its layers are this object's
            afterwards, and this rank's are moved to its device.
        ranks: two at least.
        precision: in which forward passes compute; what one rank's gradients overflow, all ranks skip.
        example: one training item.
        micro_batch: most items of a micro-batch.

    Raises:
        UserCodeError: the network is no chain that can be cut into so many stages.
    """

    used = "pipeline"

    def __init__(
        self, network: nn.Module, ranks: Ranks, precision: MixedPrecision, example: Batch, micro_batch: int
    ) -> None:
        layers = chain_of(network)
        passed = passages(layers, example.inputs, ranks.device, precision.autocast())
        slices = cut(layers, passed, ranks.world_size)
        self._whole = hollow_copy(network)
        self._ranks, self._precision, self._micro_batch = ranks, precision, micro_batch
        self.network = Stage(layers[slices[ranks.rank]]).to(ranks.device)
        self._flow = Flow(self.network, chain_of(self._whole), slices, ranks, precision)
        self._groups: list[tuple[dict[str, Any], list[str]]] = []
        precision.share(ranks)

    def connect(self) -> None:
        """Do nothing: what the ranks send each other is set up for each shape of a batch."""

    def disconnect(self) -> None:
        """Drop the buffers."""
        self._flow.close()

    def build_optimizer(self, build: Callable[[nn.Module], torch.optim.Optimizer]) -> torch.optim.Optimizer:
        """Return the optimizer over this stage, with the groups that the whole network's weights would be in."""
        optimizer = build(self._whole)
        names = {id(weight): name for name, weight in self._whole.named_parameters()}
        own = dict(self.network.named_parameters())
        self._groups = [
            (_options(group), [names[id(weight)] for weight in group["params"]]) for group in optimizer.param_groups
        ]
        for group, (_, members) in zip(optimizer.param_groups, self._groups, strict=True):
            group["params"] = [own[name] for name in members if name in own]
        optimizer.param_groups[:] = [group for group in optimizer.param_groups if group["params"]]
        return optimizer

    def parts(self, batch: slice) -> list[slice]:
        """Return a global batch as runs of micro-batches of equal size, at most two, for every rank alike."""
        return runs_of_equal_parts(batch, self._micro_batch)

    def train_batch(
        self,
        batches: Iterator[Batch],
        parts: Sequence[slice],
        items: int,
        loss_of: BatchLoss,
        backward: Backward,
    ) -> torch.Tensor:
        """Gather the gradient of the mean loss over a global batch; see `Parallel.train_batch`.

        The losses go backward within torch's schedule, so that `backward` is not called.
        """
        total = torch.zeros((), device=self._ranks.device)
        self._precision.scale(total)  # a scaler begins with its first loss, and only the last rank has any

        def scaled_loss(answers: torch.Tensor, chunk: Batch) -> torch.Tensor:
            nonlocal total
            loss = loss_of(answers, chunk).sum()
            total = total + loss.detach()
            return self._precision.scale(loss / items)

        for _ in parts:
            run = next(batches)
            self._flow.train(run, -(-len(run) // self._micro_batch), scaled_loss)
        return total

    def gradient_norm(self) -> torch.Tensor:
        """Return the norm over all stages."""
        gradients = [weight.grad for weight in self.network.parameters() if weight.grad is not None]
        own = nn.utils.get_total_norm(gradients, foreach=True).to(self._ranks.device)
        return self._ranks.sum_(own.square()).sqrt()

    def end_epoch(self) -> None:
        """Do nothing: no weight is on two ranks."""

    def measure(self, items: Items, items_per_pass: int, meter: Meter) -> dict[str, float]:
        """Let the items flow through all stages; the last rank counts them."""
        parts = runs_of_equal_parts(slice(0, len(items)), items_per_pass, MEASURED_PARTS * self._ranks.world_size)
        held = HeldErrors()
        self.network.eval()
        with torch.no_grad():
            for run in items.batches(parts):
                answers = self._flow.answers(run, -(-len(run) // items_per_pass))
                if answers is not None:
                    with held.hold():
                        meter.add(answers, run.targets)
        with self._ranks.together("validation"):
            held.check()
        return meter.total(self._ranks)

    def network_state(self) -> Mapping[str, torch.Tensor]:
        """Return weights and buffers of the whole network on rank 0, of its own stage elsewhere; a collective."""
        merged = self._gathered({name: tensor.cpu() for name, tensor in self.network.state_dict().items()})
        return {name: merged[name] for name in self._whole.state_dict() if name in merged}

    def load_network(self, state: Mapping[str, torch.Tensor]) -> None:
        """Take this stage's part of the weights and buffers of a whole network."""
        expected = self._whole.state_dict().keys()
        if state.keys() != expected:
            missing, strange = sorted(expected - state.keys()), sorted(state.keys() - expected)
            raise KeyError(f"weights of another network: missing {missing}, not known {strange}")
        self.network.load_state_dict({name: state[name] for name in self.network.state_dict()})

    def optimizer_state(self, optimizer: torch.optim.Optimizer) -> Mapping[str, Any]:
        """Return the whole state as an optimizer over the whole network would have it, on rank 0; a collective."""
        own = optimizer.state_dict()["state"]
        state = self._gathered({name: own[index] for index, name in enumerate(self._own_names()) if index in own})
        names = [name for _, members in self._groups for name in members]
        rate = {"lr": optimizer.param_groups[0]["lr"]}
        numbers = itertools.count()
        return {
            "state": {index: state[name] for index, name in enumerate(names) if name in state},
            "param_groups": [
                {**options, **rate, "params": list(itertools.islice(numbers, len(members)))}
                for options, members in self._groups
            ],
        }

    def load_optimizer(self, optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
        """Take this stage's part of the state of an optimizer over the whole network."""
        names = [name for _, members in self._groups for name in members]
        theirs = {names[index]: values for index, values in state["state"].items()}
        own = {index: theirs[name] for index, name in enumerate(self._own_names()) if name in theirs}
        load_optimizer_state(optimizer, {**optimizer.state_dict(), "state": own})

    def _own_names(self) -> list[str]:
        """Return the names of this stage's weights in the order of its optimizer."""
        own = {name for name, _ in self.network.named_parameters()}
        return [name for _, members in self._groups for name in members if name in own]

    def _gathered(self, part: dict[str, Any]) -> dict[str, Any]:
        received: list[Any] | None = [None] * self._ranks.world_size if self._ranks.is_first else None
        dist.gather_object(_on_cpu(part), received, group=self._ranks.side, group_dst=0)
        return {name: value for each in received or [part] for name, value in each.items()}


def runs_of_equal_parts(batch: slice, most: int, longest: int | None = None) -> list[slice]:
    """Cut a batch into the fewest parts, whose sizes differ by one at most, and join those of equal size to runs.

    Each run of n items is ceil(n / most) equal parts.

    Args:
        batch: positions, at least one.
        most: items of a part at most.
        longest: parts of a run at most; None: any number.
    """
    items = batch.stop - batch.start
    parts = -(-items // most)
    size, larger = divmod(items, parts)
    runs = [(larger, size + 1), (parts - larger, size)]
    bounds = [batch.start]
    for count, own in runs:
        while count:
            taken = min(count, longest or count)
            bounds.append(bounds[-1] + taken * own)
            count -= taken
    return [slice(start, stop) for start, stop in itertools.pairwise(bounds)]


def _options(group: Mapping[str, Any]) -> dict[str, Any]:
    return copy.deepcopy({name: value for name, value in group.items() if name != "params"})


def _on_cpu(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    return {key: _on_cpu(inner) for key, inner in value.items()} if isinstance(value, dict) else value
