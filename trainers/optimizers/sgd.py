"""Stochastic gradient descent with Nesterov momentum."""

import torch
from torch import nn

from trainers.config import TrainConfig
from trainers.optimizers.groups import parameter_groups
from trainers.optimizers.sharded import is_sharded

__all__ = ["sgd"]


def sgd(network: nn.Module, training: TrainConfig) -> torch.optim.Optimizer:
    """Return SGD over a network; the decay is added to the gradient (L2).

    Source: Sutskever et al. 2013, On the importance of initialization and momentum in deep learning, in torch's
        form, which multiplies the learning rate when a step is made rather than when momentum is gathered.
    """
    # Torch has no fused step for weights that are cut over ranks. And where fp16 skips the first step, the fused one
    # leaves the momentum unwritten, and then moves the weights by what was in that memory (torch 2.13).
    may_skip = training.precision == "fp16" and training.momentum > 0.0
    fused = not may_skip and not any(is_sharded(weight) for weight in network.parameters())
    return torch.optim.SGD(
        parameter_groups(network, training.weight_decay),
        lr=training.learning_rate,
        momentum=training.momentum,
        nesterov=training.momentum > 0.0,
        fused=fused,
        foreach=not fused,
    )
