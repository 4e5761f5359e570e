"""Adam: each weight has a step of its own length, from the mean and the mean square of its gradients."""

import torch
from torch import nn

from trainers.config import TrainConfig
from trainers.optimizers.groups import parameter_groups

__all__ = ["adam"]


def adam(network: nn.Module, training: TrainConfig) -> torch.optim.Optimizer:
    """Return Adam over a network; the decay is added to the gradient (L2).

    Source: Kingma and Ba 2015, arXiv 1412.6980, algorithm 1, with its constants.
    """
    return torch.optim.Adam(parameter_groups(network, training.weight_decay), lr=training.learning_rate, fused=True)
