"""Tries the networks of a space before any search: each one is built, costed, and learns one step from a few items."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from search_spaces.configuration import JsonScalar
from search_spaces.cost import (
    PartCosts,
    costs_of_parts,
    count_multiply_adds_of,
    count_parameters,
    try_and_count_multiply_adds,
)
from search_spaces.example_inputs import EXAMPLE_OUTPUTS, EXAMPLE_SHAPES, example_inputs, shape_in_words
from trainers.config import TrainConfig
from trainers.drafts import refused_in_words
from trainers.errors import UserCodeError
from trainers.networks import build_network, done_with_fewest, form_of
from trainers.trainer import Trainer

__all__ = ["Sample", "Tried", "made_up_sample", "part_costs", "sample_of", "try_network"]

ITEMS = 4
"""Items of the step: enough for a normalisation over the batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Some items that networks are built for and tried with.

    Attributes:
        input_shape: what a space is told about the inputs.
        num_outputs: numbers that a network answers for each item.
        inputs: the arguments of its forward.
        words: what they are.
    """

    input_shape: Any
    num_outputs: int
    inputs: tuple[torch.Tensor, ...]
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What has become of a network.

    Attributes:
        idle: weights that have got no gradient.
        parameters: its weights.
        multiply_adds: of one item.
    """

    idle: tuple[str, ...]
    parameters: int
    multiply_adds: int


def made_up_sample(task: str) -> Sample | None:
    """Return random items of a usual size for a task; None: it is not known what its items are."""
    shape = EXAMPLE_SHAPES.get(task)
    if shape is None:
        return None
    outputs = 1 if task == "tabular_regression" else EXAMPLE_OUTPUTS
    inputs = example_inputs(shape, ITEMS, torch.Generator().manual_seed(0))
    return Sample(
        input_shape=shape,
        num_outputs=outputs,
        inputs=inputs,
        words=f"made-up {shape_in_words(shape)} and {outputs} outputs",
    )


def sample_of(trainer: Trainer, space: str, data: Any) -> Sample:
    """Return the first item of loaded data, some times over.

    Args:
        trainer: has loaded them, and has networks.
        space: reference of the search space.
        data: what its `load` returned.
    """
    problem = trainer.drafts(space, data).problem
    inputs = tuple(part.repeat(ITEMS, *[1] * (part.ndim - 1)) for part in problem.example().inputs)
    shapes = " and ".join("x".join(map(str, part.shape[1:])) or "one number" for part in inputs)
    words = f"items of {shapes} and {problem.num_outputs} outputs"
    return Sample(input_shape=problem.input_shape, num_outputs=problem.num_outputs, inputs=inputs, words=words)


def try_network(space: str, configuration: Mapping[str, JsonScalar], sample: Sample) -> Tried:
    """Build a configuration's network and train it one step.

    Torch's global generators are afterwards what they were.

    Raises:
        InfeasibleArchitectureError: there is no such network for these items.
        UserCodeError: what the network answers is wrong; its own code may raise anything else.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = refused_in_words(lambda: build_network(space, configuration, sample))
        count = partial(try_and_count_multiply_adds, network)
        one = tuple(part[:1] for part in sample.inputs)
        multiply_adds, items = refused_in_words(lambda: done_with_fewest(count, one))
        idle = _step(network, sample)
    return Tried(idle=idle, parameters=count_parameters(network), multiply_adds=multiply_adds // items)


def part_costs(
    space: str, configuration: Mapping[str, JsonScalar], sample: Sample
) -> tuple[PartCosts, tuple[PartCosts, ...]]:
    """Return what a configuration's network costs, as a whole and by its own modules; it is built without memory.

    Raises:
        InfeasibleArchitectureError: there is no such network.
        RuntimeError: shapes alone cannot run it; its own code may raise anything else.
    """
    with torch.device("meta"):
        network = build_network(space, configuration, sample)
    one = tuple(part[:1] for part in sample.inputs)
    whole = PartCosts(
        name="all",
        kind=type(network).__name__,
        parameters=count_parameters(network),
        multiply_adds=count_multiply_adds_of(network, *one),
    )
    return whole, costs_of_parts(network, *one)


def _step(network: nn.Module, sample: Sample) -> tuple[str, ...]:
    """Make a step, and return the names of the weights that have got no gradient."""
    optimizer = torch.optim.SGD(list(network.parameters()), lr=TrainConfig().learning_rate)
    network.train()
    answers = network(*sample.inputs)
    _check(answers, sample)
    answers.float().square().mean().backward()
    weights = [(name, weight) for name, weight in network.named_parameters() if weight.requires_grad]
    strange = [name for name, weight in weights if weight.grad is not None and not weight.grad.isfinite().all()]
    if strange:
        raise UserCodeError(f"the first gradient of {', '.join(strange)} is not finite")
    optimizer.step()
    return tuple(name for name, weight in weights if weight.grad is None)


def _check(answers: object, sample: Sample) -> None:
    if not isinstance(answers, torch.Tensor) or answers.shape != (ITEMS, sample.num_outputs):
        raise UserCodeError(
            f"the network answers {ITEMS} items with {form_of(answers)}; needed: a tensor of "
            f"{(ITEMS, sample.num_outputs)}"
        )
    if not answers.isfinite().all():
        raise UserCodeError("the first answers of the network are not finite")
