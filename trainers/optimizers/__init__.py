"""The optimizers by name, and which weights decay."""

from collections.abc import Iterable

import torch
from torch import nn

from trainers.config import OptimizerName, TrainConfig

__all__ = ["build_optimizer", "parameter_groups"]


def build_optimizer(network: nn.Module, training: TrainConfig) -> torch.optim.Optimizer:
    """Return the optimizer of a configuration over the trainable weights of a network.

    `sgd` has Nesterov momentum 0.9 (Sutskever et al. 2013), `adam` adds the decay to the gradient (Kingma and
    Ba 2015, arXiv 1412.6980), `adamw` decouples it (Loshchilov and Hutter 2019, arXiv 1711.05101).

    Raises:
        ValueError: the network has no trainable weight.
    """
    groups = parameter_groups(network, training.weight_decay)
    if not groups:
        raise ValueError("the network has no trainable weight")
    return _build(training.optimizer, groups, training.learning_rate)


def parameter_groups(network: nn.Module, weight_decay: float) -> list[dict[str, object]]:
    """Split the trainable weights into those that decay and those that do not (biases, normalisation).

    A weight of one dimension or none scales or shifts a channel; pulling it to 0 regularises nothing (Goyal
    et al. 2017, arXiv 1706.02677, section 5.3). Empty groups are left out.
    """
    trainable = [weight for weight in network.parameters() if weight.requires_grad]
    decaying = [weight for weight in trainable if weight.dim() > 1]
    exempt = [weight for weight in trainable if weight.dim() <= 1]
    groups: list[dict[str, object]] = []
    if decaying:
        groups.append({"params": decaying, "weight_decay": weight_decay})
    if exempt:
        groups.append({"params": exempt, "weight_decay": 0.0})
    return groups


def _build(name: OptimizerName, groups: Iterable[dict[str, object]], learning_rate: float) -> torch.optim.Optimizer:
    # fused: one call for all weights; on a CPU with small networks the per-weight calls cost more than the
    # arithmetic
    if name == "sgd":
        return torch.optim.SGD(groups, lr=learning_rate, momentum=0.9, nesterov=True, fused=True)
    if name == "adam":
        return torch.optim.Adam(groups, lr=learning_rate, fused=True)
    return torch.optim.AdamW(groups, lr=learning_rate, fused=True)
