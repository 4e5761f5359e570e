"""Networks of a search space: built from a configuration, looked over before training, and counted."""

import inspect
import logging
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, Protocol, TypeVar

import torch
from torch import nn

from search_spaces.catalog import load
from search_spaces.configuration import JsonScalar
from search_spaces.own_code import OWN_CODE_ERRORS, error_in_words
from trainers.errors import is_out_of_memory

__all__ = [
    "Shaped",
    "answered",
    "brought_to",
    "build_network",
    "done_with_fewest",
    "form_of",
    "items_in_words",
    "multiply_adds",
    "repeated",
    "unused_weights",
]

logger = logging.getLogger(__name__)
_T = TypeVar("_T")


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


def answered(network: nn.Module, one: tuple[torch.Tensor, ...]) -> tuple[Any, int]:
    """Return what a network answers in evaluation mode to as few items as it can; see `done_with_fewest`.

    Args:
        network: on any device; is in evaluation mode afterwards.
        one: its arguments for one item, to whose device a tensor of answers is brought.
    """
    network.eval()
    with torch.no_grad():
        answers, times = done_with_fewest(network, brought_to(network, one))
    return answers.to(one[0].device) if isinstance(answers, torch.Tensor) else answers, times


def brought_to(network: nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Return inputs on the device where a network's weights are: a network that ranks share is tried on the CPU."""
    tensor = next(chain(network.parameters(), network.buffers()), None)
    return inputs if tensor is None else tuple(part.to(tensor.device) for part in inputs)


def done_with_fewest(work: Callable[..., _T], one: tuple[torch.Tensor, ...]) -> tuple[_T, int]:
    """Return what some work on a network gives for one item, or for two where one item alone makes it fail.

    Batch normalisation that keeps no running statistics takes those of the items that come together, in evaluation,
    too: there is no spread of one.

    Args:
        work: is given the network's arguments; in evaluation mode.
        one: these, for one item.

    Returns:
        What it gives, and how many times the item was given.

    Raises:
        Exception: what the network's code raises for one item; for two, it does so, too.
    """
    try:
        return work(*one), 1
    except OWN_CODE_ERRORS as error:
        if is_out_of_memory(error):
            raise
        try:
            given = work(*repeated(one, 2))
        except OWN_CODE_ERRORS as another:
            logger.debug("two items fail as well as one reason=%s", error_in_words(another))
            raise error from None
        logger.debug("one item is too few for the network reason=%s", error_in_words(error))
        return given, 2


def repeated(parts: tuple[torch.Tensor, ...], times: int) -> tuple[torch.Tensor, ...]:
    """Return items some times over, along the first dimension of each part."""
    return parts if times == 1 else tuple(torch.cat([part] * times) for part in parts)


def form_of(answers: object) -> tuple[int, ...] | str:
    """Return the shape of a tensor, or the name of what else a network has answered."""
    return tuple(answers.shape) if isinstance(answers, torch.Tensor) else type(answers).__name__


def items_in_words(items: int) -> str:
    """Return `one item`, or how many."""
    return "one item" if items == 1 else f"{items} items"


def unused_weights(network: nn.Module, inputs: tuple[torch.Tensor, ...]) -> list[str]:
    """Return the names of weights that the answers do not depend on, tried with as few items as it can answer.

    DistributedDataParallel must be told of them, or it waits for their gradients for ever.
    """
    network.eval()
    network(*inputs).float().sum().backward()
    weights = list(network.named_parameters())
    unused = [name for name, weight in weights if weight.requires_grad and weight.grad is None]
    network.zero_grad(set_to_none=True)
    return unused


def multiply_adds(network: nn.Module, inputs: tuple[torch.Tensor, ...]) -> int | None:
    """Return the cost of one item, or None for a network that shapes alone cannot run.

    Args:
        network: on any device.
        inputs: its arguments for as many items as it needs at least.
    """
    from search_spaces.cost import count_multiply_adds_of

    try:
        return count_multiply_adds_of(network, *inputs) // len(inputs[0])
    except OWN_CODE_ERRORS as error:
        logger.warning("multiply-adds not counted reason=%s", error_in_words(error))
        return None
