"""Networks of a search space: built from a configuration, looked over before training, and counted."""

import inspect
import logging
from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import nn

from search_spaces.catalog import load
from search_spaces.configuration import JsonScalar

__all__ = ["Shaped", "build_network", "multiply_adds", "unused_weights"]

logger = logging.getLogger(__name__)


class Shaped(Protocol):
    """What a network is built for: data, or a problem made of them."""

    @property
    def input_shape(self) -> Any:
        """What the space is told about the inputs: one of `search_spaces.shapes`."""

    @property
    def num_outputs(self) -> int:
        """Numbers that the network answers for each item."""


def build_network(space: str, configuration: Mapping[str, JsonScalar], data: Shaped) -> nn.Module:
    """Build the network of a configuration, with fresh weights from torch's global generator, on the CPU.

    A `build_model` that takes the configuration alone knows its data itself.
    """
    module = load(space)
    build, values = module.build_model, module.SPACE.plain(configuration)
    network: nn.Module
    if len(inspect.signature(build).parameters) == 1:
        network = build(values)  # type: ignore[call-arg]  # a person's own may take less
    else:
        network = build(values, data.input_shape, data.num_outputs)
    return network


def unused_weights(network: nn.Module, inputs: tuple[torch.Tensor, ...]) -> list[str]:
    """Return the names of weights that the answers do not depend on, tried with one item.

    DistributedDataParallel must be told of them, or it waits for their gradients for ever.
    """
    network.eval()
    network(*inputs).float().sum().backward()
    weights = list(network.named_parameters())
    unused = [name for name, weight in weights if weight.requires_grad and weight.grad is None]
    network.zero_grad(set_to_none=True)
    return unused


def multiply_adds(network: nn.Module, inputs: tuple[torch.Tensor, ...]) -> int | None:
    """Return the cost of one item, or None for a network that shapes alone cannot run."""
    from search_spaces.cost import count_multiply_adds_of

    try:
        return count_multiply_adds_of(network, *inputs)
    except (RuntimeError, NotImplementedError) as error:
        logger.warning("multiply-adds not counted reason=%s", error)
        return None
