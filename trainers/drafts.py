"""Networks looked at before they are trained: built, large ones without memory, tried with one item, and costed.

Nothing is trained here, and nothing drawn from torch's global generators.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch
from torch import nn

from search_spaces.configuration import JsonScalar
from search_spaces.cost import count_multiply_adds_of, count_parameters, try_and_count_multiply_adds
from search_spaces.errors import InfeasibleArchitectureError
from search_spaces.latency import measure_latency_ms, one_cpu_thread
from search_spaces.own_code import OWN_CODE_ERRORS, error_in_words
from trainers.config import TrainConfig
from trainers.errors import is_out_of_memory
from trainers.estimates import estimate_memory
from trainers.large_networks import build_looking_ahead
from trainers.networks import answered, build_network, done_with_fewest, repeated
from trainers.problem import Problem

__all__ = ["Drafts", "UnbuildableNetworkError", "refused_in_words"]

logger = logging.getLogger(__name__)

MOST_REAL_WORK = 10**9
"""Weights times the numbers of an item: about the most multiply-adds that its pass has, convolutions using each weight
at each pixel. Up to so many a real pass takes no longer than one on shapes, which takes 15 to 80 ms for any network."""


class UnbuildableNetworkError(InfeasibleArchitectureError):
    """A network's own code, or torch, refuses its sizes with these inputs.

    It may be meant, as where images are halved too often; it may also be a fault of the code.
    """


@dataclass(frozen=True, slots=True)
class _Draft:
    """A network; the whole of one that is large has no memory for its weights."""

    configuration: dict[str, JsonScalar]
    network: nn.Module
    has_memory: bool


class _LargeError(Exception):
    """Ends the building of a large network, once it is known as a whole."""

    def __init__(self, sketch: nn.Module) -> None:
        super().__init__()
        self.sketch = sketch


class Drafts:
    """The networks of one space for one data set; the last one is kept, so that several of its costs build it once.

    Args:
        space: reference of the search space that builds them.
        problem: the data, on the CPU.
    """

    def __init__(self, space: str, problem: Problem) -> None:
        self._space = space
        self.problem = problem
        self._example = problem.example()
        self._last: _Draft | None = None

    def count_parameters(self, configuration: Mapping[str, JsonScalar]) -> int:
        """Return the number of weights.

        Raises:
            InfeasibleArchitectureError: the configuration describes nothing that can be trained.
            UnbuildableNetworkError: it can only be built with other inputs, or not at all.
        """
        return count_parameters(self._draft(configuration).network)

    def count_multiply_adds(self, configuration: Mapping[str, JsonScalar]) -> int:
        """Return the multiply-adds of one item; it is sent through the network, through a large one as a mere shape.

        Raises:
            InfeasibleArchitectureError: the configuration describes nothing that can be trained.
            UnbuildableNetworkError: it can only be built with other inputs, or not at all.
        """
        draft = self._draft(configuration)
        if not draft.has_memory or self._work(draft.network) > MOST_REAL_WORK:
            try:
                return count_multiply_adds_of(draft.network, *self._example.inputs)
            except InfeasibleArchitectureError:
                raise
            except OWN_CODE_ERRORS as error:  # nothing has a value there
                logger.debug("shapes alone do not run the network reason=%s", error_in_words(error))
        network = draft.network if draft.has_memory else self._real(configuration)
        count = partial(try_and_count_multiply_adds, network)
        with torch.random.fork_rng(devices=[]):
            multiply_adds, items = refused_in_words(lambda: done_with_fewest(count, self._example.inputs))
        return multiply_adds // items

    def estimate_memory_bytes(
        self, configuration: Mapping[str, JsonScalar], training: TrainConfig, *, ranks: int
    ) -> int | None:
        """Return what a rank of a training needs at most, with the whole network; None: shapes alone do not tell it."""
        is_half = training.precision in ("bf16", "fp16")
        network = self._draft(configuration).network
        estimate = estimate_memory(network, self._example, training, ranks=ranks, is_half=is_half)
        return None if estimate is None else estimate.peak

    def measure_latency_ms(self, configuration: Mapping[str, JsonScalar], device: str) -> float:
        """Return the median time in which the network answers one item, in milliseconds; on a CPU in one thread.

        It is that of two items where the network cannot answer one alone.
        """
        draft = self._draft(configuration)
        network = draft.network if draft.has_memory else self._real(configuration)
        self._last = None  # it moves to the device, and other costs are told on the CPU
        inputs = self._answered_inputs(network)
        with one_cpu_thread():
            return measure_latency_ms(network.to(device), *inputs, items=len(inputs[0]))

    def _draft(self, configuration: Mapping[str, JsonScalar]) -> _Draft:
        """Build the network, unless it is the last one."""
        given = dict(configuration)
        if self._last is None or self._last.configuration != given:
            self._last = None  # two at a time would need the memory of both
            self._last = self._built(given)
        return self._last

    def _built(self, configuration: dict[str, JsonScalar]) -> _Draft:
        """Build the network with its weights; as soon as these are many, without memory, where its code allows it."""

        def look(sketch: nn.Module) -> None:
            raise _LargeError(sketch)

        build = partial(build_network, self._space, configuration, self.problem)
        try:
            with torch.random.fork_rng(devices=[]):
                network = refused_in_words(lambda: build_looking_ahead(build, look))
        except _LargeError as large:
            return _Draft(configuration, large.sketch, has_memory=False)
        return _Draft(configuration, network, has_memory=True)

    def _work(self, network: nn.Module) -> int:
        return count_parameters(network) * sum(part[0].numel() for part in self._example.inputs)

    def _answered_inputs(self, network: nn.Module) -> tuple[torch.Tensor, ...]:
        """Return as few items as a network on the CPU can answer."""
        with torch.random.fork_rng(devices=[]):
            _, times = refused_in_words(lambda: answered(network, self._example.inputs))
        return repeated(self._example.inputs, times)

    def _real(self, configuration: Mapping[str, JsonScalar]) -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            return refused_in_words(lambda: build_network(self._space, configuration, self.problem))


_T = TypeVar("_T")


def refused_in_words(work: Callable[[], _T]) -> _T:
    """Return what some work on a network returns; name the errors by which torch and most networks refuse sizes.

    Raises:
        UnbuildableNetworkError: in place of such an error; all others are faults of the code.
    """
    try:
        return work()
    except InfeasibleArchitectureError:
        raise
    except (RuntimeError, ValueError, AssertionError, ZeroDivisionError) as error:
        if is_out_of_memory(error) or isinstance(error, NotImplementedError | RecursionError):
            raise
        raise UnbuildableNetworkError(f"it cannot be built for these data: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__
