"""What a training will need: memory, told from shapes before it begins, and time, told by its first steps."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from search_spaces.own_code import OWN_CODE_ERRORS, error_in_words
from search_spaces.way_back import kept_for_the_way_back, peak_on_the_way_back
from trainers.config import OptimizerName, TrainConfig
from trainers.device_load import DeviceLoad
from trainers.errors import DeviceMemoryError, NetworkMemoryError
from trainers.problem import Batch

__all__ = [
    "OPTIMIZER_STATES",
    "MemoryEstimate",
    "check_fits",
    "estimate_epoch_s",
    "estimate_memory",
    "estimate_network",
    "expected_peak",
    "in_words",
    "or_fewer_ranks",
    "room_in_words",
]

logger = logging.getLogger(__name__)

OPTIMIZER_STATES: Mapping[OptimizerName, int] = {
    "sgd": 1,
    "adam": 2,
    "adamw": 2,
    "rmsprop": 2,
    "lion": 1,
    "muon": 1,
}
"""Numbers that an optimizer with momentum keeps for each weight; `muon` has two for those that are in no matrix."""
_FORWARD_SHARE = 1.0 / 3.0
"""Part of a training step that its forward pass takes: going backward costs about twice as much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """The memory of a training on one rank, in bytes.

    What the libraries take for themselves, and their working memory within an operation, is not in it.

    Attributes:
        weights: weights and buffers.
        averages: their moving average, which begins with the first step; 0: there is none.
        gradients: one number for each weight that is trained.
        optimizer: the optimizer's state.
        micro_batch: what is there besides, at most, while one micro-batch goes forward and back: the batch, what the
            layers keep of it, and gradients.
    """

    weights: int
    averages: int = 0
    gradients: int
    optimizer: int
    micro_batch: int

    @property
    def peak(self) -> int:
        """The most that is needed at a time: while a micro-batch is computed, or when the weights are moved."""
        return self.weights + self.averages + self.optimizer + max(self.micro_batch, self.gradients)

    def __str__(self) -> str:
        """Return the parts that there are."""
        sizes = {name: getattr(self, name) for name in self.__slots__}
        return ", ".join(f"{name.replace('_', '-')} {in_words(size)}" for name, size in sizes.items() if size)


def estimate_memory(
    network: nn.Module, example: Batch, training: TrainConfig, *, ranks: int = 1, is_half: bool = False
) -> MemoryEstimate | None:
    """Return what each rank of a training needs that holds the whole network.

    Weights, buffers and random states stay as they are. It takes about as long as a step of a small network.

    Args:
        network: on any device.
        example: one item, of which only shapes and types matter.
        training: the optimizer and the size of a micro-batch.
        ranks: how many share each batch.
        is_half: whether activations are kept in a format of two bytes.

    Returns:
        The estimate; None for a network that shapes alone cannot run.
    """
    trained = [_size(weight) for weight in network.parameters() if weight.requires_grad]
    alone, gradients = estimate_network(network, training), sum(trained)
    try:
        kept = kept_for_the_way_back(network, example.inputs, training.micro_batch(ranks), is_half=is_half)
    except OWN_CODE_ERRORS as error:  # the training itself will tell
        logger.debug("memory is not estimated reason=%s", error_in_words(error))
        return None
    # Those of an earlier micro-batch, or the buckets of several ranks; each new gradient is added to one that is there.
    gradients_stay = training.accumulate > 1 or ranks > 1
    there = gradients + max(trained, default=0) if gradients_stay else 0
    rounded = gradients // 2 if is_half else 0  # weights in two bytes, which operations take
    own = peak_on_the_way_back(kept, gradients_stay=gradients_stay) + there + rounded
    return replace(alone, micro_batch=own)


def estimate_network(network: nn.Module, training: TrainConfig) -> MemoryEstimate:
    """Return what a whole network needs by itself, without a batch.

    Args:
        network: on any device, `meta` as well; weights whose shapes are not known yet do not count.
        training: tells the optimizer, and whether there are averages.
    """
    tensors = [tensor for tensor in (*network.parameters(), *network.buffers()) if not is_lazy(tensor)]
    gradients = sum(_size(t) for t in tensors if isinstance(t, nn.Parameter) and t.requires_grad)
    return MemoryEstimate(
        weights=sum(map(_size, tensors)),
        averages=sum(_size(t) for t in tensors if t.is_floating_point()) if training.ema > 0.0 else 0,
        gradients=gradients,
        optimizer=gradients * _states(training),
        micro_batch=0,
    )


def check_fits(estimate: MemoryEstimate, load: DeviceLoad, micro_batch: int) -> None:
    """Refuse a training that cannot fit: its network is on the device already, and the rest is more than there is.

    Args:
        estimate: what it needs.
        load: of the device, with the network on it.
        micro_batch: items that are computed at a time, for the message.

    Raises:
        NetworkMemoryError: it cannot fit, however small the micro-batch.
        DeviceMemoryError: it cannot fit.
    """
    missing, available = _still_needed(estimate), load.available_bytes()
    alone = _still_needed(replace(estimate, micro_batch=0))
    if alone > available:
        raise NetworkMemoryError(
            f"gradients and optimizer state need {in_words(alone)} beside the weights (estimated: {estimate}), but "
            f"{room_in_words(load, available)}; no smaller batch helps: use a smaller network{or_fewer_ranks(load)}"
        )
    if missing > available:
        raise DeviceMemoryError(
            f"a micro-batch of {micro_batch} items needs {in_words(missing)} more memory (estimated: {estimate}), but "
            f"{room_in_words(load, available)}; use a smaller batch_size or more accumulate, or a smaller network"
            f"{or_fewer_ranks(load)}"
        )


def expected_peak(estimate: MemoryEstimate, load: DeviceLoad) -> int:
    """Return the memory that will be taken at most, what is taken now included; the network is there already."""
    return load.memory_bytes() + _still_needed(estimate)


def in_words(size: int) -> str:
    """Return a number of bytes in MiB or GiB."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


def room_in_words(load: DeviceLoad, available: int) -> str:
    """Return how much memory a device has left, and of how much; ranks that share it have a part each."""
    share = "" if load.sharers == 1 else f" as the share of each of the {load.sharers} ranks on this machine"
    return f"the {load.name} has {in_words(available)} left of {in_words(load.memory_limit_bytes)}{share}"


def or_fewer_ranks(load: DeviceLoad) -> str:
    """Return the advice that helps where ranks share a device's memory, to be put after another one."""
    return "" if load.sharers == 1 else ", or fewer ranks on this machine"


def estimate_epoch_s(training_s: float, training_items: int, validation_items: int) -> float:
    """Return how long an epoch takes with its validation, in seconds.

    Args:
        training_s: for its training items.
        training_items: how many these are.
        validation_items: how many items are measured afterwards.
    """
    return training_s * (1.0 + _FORWARD_SHARE * validation_items / training_items)


def _still_needed(estimate: MemoryEstimate) -> int:
    return estimate.peak - estimate.weights


def _states(training: TrainConfig) -> int:
    is_plain = training.optimizer in ("sgd", "rmsprop") and training.momentum == 0.0
    return OPTIMIZER_STATES[training.optimizer] - (1 if is_plain else 0)


def _size(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()
