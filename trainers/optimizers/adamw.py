"""AdamW: Adam whose decay is no part of the gradient."""

import torch
from torch import nn

from trainers.config import TrainConfig
from trainers.optimizers.groups import parameter_groups

__all__ = ["adamw"]


def adamw(network: nn.Module, training: TrainConfig) -> torch.optim.Optimizer:
    """Return AdamW over a network; each step takes learning rate times decay off the weights.

    Source: Loshchilov and Hutter 2019, arXiv 1711.05101, algorithm 2.
    """
    return torch.optim.AdamW(parameter_groups(network, training.weight_decay), lr=training.learning_rate, fused=True)
