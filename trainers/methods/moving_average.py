"""A moving average of the weights, which is measured and kept in the place of those in training.

Source: Polyak and Juditsky 1992; as an exponential average Tarvainen and Valpola 2017, arXiv 1703.01780, section 2.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from trainers.methods.method import AveragingMethod
from trainers.optimizers.sharded import own_part

__all__ = ["MovingAverage", "decay_at"]


def decay_at(updates: int, decay: float) -> float:
    """Return how much of the average stays in its next update: `min(decay, (1 + updates) / (10 + updates))`.

    So the first weights, which are random, are soon forgotten, and the average is of use in short trainings too.

    Args:
        updates: made so far, at least 0.
        decay: after the warm-up, in [0, 1).

    Source: the argument `num_updates` of TensorFlow's `tf.train.ExponentialMovingAverage`.
    """
    return min(decay, (1.0 + updates) / (10.0 + updates))


class MovingAverage(AveragingMethod):
    """The exponential moving average of weights and buffers over the steps that were made.

    It begins as a copy of the weights after the first step. Whole numbers, such as the count of batches, are not
    averaged but those in use. Tensors are updated in place, so the network must keep its own, as all of torch's do.

    Args:
        decay: per step, after a warm-up (`decay_at`).
    """

    def __init__(self, decay: float) -> None:
        self._decay = decay
        self._updates = 0
        self._used: list[torch.Tensor] = []
        self._averages: list[torch.Tensor] = []

    @torch.no_grad()
    def after_step(self, network: nn.Module) -> None:
        """Move the averages towards the new weights."""
        if self._updates == 0:
            self._begin(network)
        else:
            torch._foreach_lerp_(self._averages, self._used, 1.0 - decay_at(self._updates, self._decay))
        self._updates += 1

    @contextmanager
    def averaged(self, network: nn.Module) -> Iterator[None]:
        """Exchange the weights in use and the averages meanwhile; before the first step there are no averages."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    @torch.no_grad()
    def go_on_from(self, network: nn.Module) -> None:
        """Take what the network holds for the averages, when a training is resumed: a checkpoint's `network`."""
        self._begin(network)

    def state_dict(self) -> dict[str, Any]:
        """Return the number of updates; the averages themselves are the network of a checkpoint."""
        return {"updates": self._updates}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with the number of updates; a checkpoint that was written without averages has none."""
        self._updates = int(state.get("updates", 0))

    def _begin(self, network: nn.Module) -> None:
        tensors = [*network.parameters(), *network.buffers()]
        self._used = [own_part(tensor.detach()) for tensor in tensors if tensor.is_floating_point()]
        self._averages = [tensor.clone() for tensor in self._used]

    @torch.no_grad()
    def _exchange(self) -> None:
        if self._updates > 0:
            kept = [tensor.clone() for tensor in self._used]
            torch._foreach_copy_(self._used, self._averages)
            torch._foreach_copy_(self._averages, kept)
