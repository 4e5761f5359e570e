"""The optimizers by name, each in a module of its own that says where it comes from.

All take their learning rate from `param_groups` at every step, and leave biases and normalisation without decay.
"""

from collections.abc import Callable, Mapping

import torch
from torch import nn

from trainers.config import OptimizerName, TrainConfig
from trainers.optimizers.adam import adam
from trainers.optimizers.adamw import adamw
from trainers.optimizers.groups import parameter_groups
from trainers.optimizers.lion import lion
from trainers.optimizers.muon import muon
from trainers.optimizers.rmsprop import rmsprop
from trainers.optimizers.sgd import sgd

__all__ = ["build_optimizer", "parameter_groups"]

_BUILDERS: Mapping[OptimizerName, Callable[[nn.Module, TrainConfig], torch.optim.Optimizer]] = {
    "sgd": sgd,
    "adam": adam,
    "adamw": adamw,
    "rmsprop": rmsprop,
    "lion": lion,
    "muon": muon,
}


def build_optimizer(network: nn.Module, training: TrainConfig) -> torch.optim.Optimizer:
    """Return the optimizer of a configuration over the trainable weights of a network.

    Args:
        network: on its device, and cut over ranks where it will be.
        training: names the optimizer and its numbers.

    Raises:
        ValueError: the network has no trainable weight.
    """
    if not any(weight.requires_grad for weight in network.parameters()):
        raise ValueError("the network has no trainable weight")
    return _BUILDERS[training.optimizer](network, training)
