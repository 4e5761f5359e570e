"""Which weights decay."""

from typing import Any

from torch import nn

__all__ = ["decaying_weights", "parameter_groups"]


def decaying_weights(network: nn.Module) -> list[nn.Parameter]:
    """Return the trainable weights that are pulled to 0, by L2 or L1: all but biases and normalisation."""
    return [weight for weight in network.parameters() if weight.requires_grad and weight.dim() > 1]


def parameter_groups(network: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Split the trainable weights into those that decay and those that do not (biases, normalisation).

    A weight of one dimension or none scales or shifts a channel; pulling it to 0 regularises nothing (Goyal
    et al. 2017, arXiv 1706.02677, section 5.3). Empty groups are left out.
    """
    decaying = decaying_weights(network)
    exempt = [weight for weight in network.parameters() if weight.requires_grad and weight.dim() <= 1]
    groups: list[dict[str, Any]] = []
    if decaying:
        groups.append({"params": decaying, "weight_decay": weight_decay})
    if exempt:
        groups.append({"params": exempt, "weight_decay": 0.0})
    return groups
