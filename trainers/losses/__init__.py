"""What is minimised: the losses by name, each a pure function in a module of its own.

A loss gives one number per item: only the caller knows over how many items of how many ranks and micro-batches the
mean goes. Which loss is for classes and which for numbers is told by `trainers.loss_choice`.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from trainers.config import TrainConfig
from trainers.loss_choice import check_loss
from trainers.losses.binary import binary
from trainers.losses.class_weights import balanced_class_weights
from trainers.losses.cross_entropy import cross_entropy
from trainers.losses.focal import focal
from trainers.losses.huber import huber
from trainers.losses.mse import mse
from trainers.losses.smooth_l1 import smooth_l1

__all__ = ["Loss", "build_loss", "build_number_loss"]

Loss: TypeAlias = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""(answers, targets) -> losses_N, float32."""


def build_loss(training: TrainConfig, labels_N: npt.NDArray[np.int64], num_classes: int, device: torch.device) -> Loss:
    """Return the loss of a configuration for telling classes apart.

    Args:
        training: names it.
        labels_N: the classes of the training items.
        num_classes: number of classes.
        device: where it is computed.

    Raises:
        UserCodeError: it is a loss for numbers; the message names those for classes.
    """
    check_loss(training, "classes")
    weight_K = None
    if training.class_weights == "balanced":
        weight_K = torch.from_numpy(balanced_class_weights(labels_N, num_classes)).to(device)
    if training.loss == "focal":
        return partial(focal, gamma=training.focal_gamma, label_smoothing=training.label_smoothing, weight_K=weight_K)
    chosen = binary if training.loss == "binary" else cross_entropy
    return partial(chosen, label_smoothing=training.label_smoothing, weight_K=weight_K)


def build_number_loss(training: TrainConfig) -> Loss:
    """Return the loss of a configuration for telling numbers, which takes answers of (N,) or (N, 1).

    Raises:
        UserCodeError: it is a loss for classes, or asks for what numbers do not have; the message names those for
            numbers.
    """
    check_loss(training, "numbers")
    if training.loss == "smooth_l1":
        return smooth_l1
    return huber if training.loss == "huber" else mse
