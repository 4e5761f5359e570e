"""What is minimised: the losses by name, each a pure function in a module of its own.

A loss gives one number per item: only the caller knows over how many items of how many ranks and micro-batches the
mean goes.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from trainers.config import TrainConfig
from trainers.losses.cross_entropy import cross_entropy

__all__ = ["Loss", "build_loss"]

Loss: TypeAlias = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""(answers, targets) -> losses_N, float32."""


def build_loss(training: TrainConfig, labels_N: npt.NDArray[np.int64], num_classes: int, device: torch.device) -> Loss:
    """Return the loss of a configuration for telling classes apart.

    Args:
        training: names it.
        labels_N: the classes of the training items.
        num_classes: number of classes.
        device: where it is computed.
    """
    return partial(cross_entropy, label_smoothing=training.label_smoothing)
