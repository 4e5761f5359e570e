"""RMSprop: gradients divided by the root of their mean square, with momentum."""

import torch
from torch import nn

from trainers.config import TrainConfig
from trainers.optimizers.groups import parameter_groups

__all__ = ["rmsprop"]


def rmsprop(network: nn.Module, training: TrainConfig) -> torch.optim.Optimizer:
    """Return RMSprop over a network; the decay is added to the gradient (L2).

    The mean square starts at 0 and is not corrected for it, so that the first steps are about ten times as long as
    the learning rate says; a warm-up makes up for that.

    Source: Hinton, Srivastava and Swersky 2012, Neural Networks for Machine Learning, lecture 6e. The mean square
        is over about 100 steps (0.99), as in torch, where the lecture has 10.
    """
    # foreach: torch has no fused step for it; one call for all weights saves up to 40 % of the time on a CPU
    return torch.optim.RMSprop(
        parameter_groups(network, training.weight_decay),
        lr=training.learning_rate,
        momentum=training.momentum,
        foreach=True,
    )
