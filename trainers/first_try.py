"""Tries on the CPU what only the data and a network can tell, so that a plan is refused before anything is trained."""

import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import torch
from torch import nn

from search_spaces.own_code import OWN_CODE_ERRORS, error_in_words
from trainers.errors import UserCodeError, is_out_of_memory
from trainers.large_networks import hollow
from trainers.methods.distillation import load_teacher
from trainers.networks import repeated
from trainers.problem import Batch, Problem

__all__ = ["on_cpu", "pipeline_mistakes", "teacher_mistakes"]

logger = logging.getLogger(__name__)
_CPU = torch.device("cpu")


def on_cpu(problem_on: Callable[[torch.device], Problem]) -> Problem:
    """Return a problem on the CPU."""
    return problem_on(_CPU)


def teacher_mistakes(location: str, problem: Problem) -> list[str]:
    """Return in a sentence why nothing can be learned from a teacher; empty: it can be, or this machine is too small.

    Args:
        location: its checkpoint, a file.
        problem: what the student learns, on the CPU.
    """
    try:
        with torch.random.fork_rng(devices=[]):
            load_teacher(location, problem, _CPU)
    except UserCodeError as error:
        return [str(error)]
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        logger.debug("teacher is not tried reason=%s", error)
    return []


def pipeline_mistakes(builds: Sequence[Callable[[], nn.Module]], example: Batch, ranks: int) -> list[str]:
    """Return in a sentence why none of some networks can be cut into stages; empty: one can be, or nobody can tell.

    Args:
        builds: each makes a network; the sentence is about the first one.
        example: one item.
        ranks: how many stages.
    """
    mistakes = []
    for build in builds:
        try:
            _cut(build, example, ranks)
        except UserCodeError as error:
            mistakes.append(str(error))
        except OWN_CODE_ERRORS as error:  # the training itself will tell
            logger.debug("pipeline is not tried reason=%s", error_in_words(error))
            return []
        else:
            return []
    return mistakes[:1]


def _cut(build: Callable[[], nn.Module], example: Batch, ranks: int) -> None:
    network = hollow(build)
    if network is not None:
        try:
            return _cut_network(network, example, ranks)
        except UserCodeError as error:  # it may be due to the missing values alone
            logger.debug("pipeline is tried with values reason=%s", error)
    with torch.random.fork_rng(devices=[]):
        _cut_network(build(), example, ranks)


def _cut_network(network: nn.Module, example: Batch, ranks: int) -> None:
    from trainers.parallel.stages import chain_of, cut, passages

    layers = chain_of(network.eval())
    inputs = repeated(example.inputs, 2)  # some normalisation has no spread of one item
    cut(layers, passages(layers, inputs, _CPU, nullcontext()), ranks)
