"""Networks looked at before they are trained: built without memory, tried with one item, and costed.

Nothing is trained here, and nothing drawn from torch's global generators.
"""

import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

import torch
from torch import nn

from search_spaces.configuration import JsonScalar
from search_spaces.cost import count_multiply_adds_of, count_parameters, try_and_count_multiply_adds
from search_spaces.errors import InfeasibleArchitectureError
from search_spaces.latency import measure_latency_ms, one_cpu_thread
from trainers.config import TrainConfig
from trainers.errors import is_out_of_memory
from trainers.estimates import estimate_memory
from trainers.networks import answered, build_network, repeated
from trainers.problem import Problem

__all__ = ["Drafts", "UnbuildableNetworkError", "refused_in_words"]

logger = logging.getLogger(__name__)


class UnbuildableNetworkError(InfeasibleArchitectureError):
    """A network's own code, or torch, refuses its sizes with these inputs.

    It may be meant, as where images are halved too often; it may also be a fault of the code.
    """


class Drafts:
    """The networks of one space for one data set.

    Args:
        space: reference of the search space that builds them.
        problem: the data, on the CPU.
    """

    def __init__(self, space: str, problem: Problem) -> None:
        self._space = space
        self.problem = problem
        self._example = problem.example()

    def count_parameters(self, configuration: Mapping[str, JsonScalar]) -> int:
        """Return the number of weights.

        Raises:
            InfeasibleArchitectureError: the configuration describes nothing that can be trained.
            UnbuildableNetworkError: it can only be built with other inputs, or not at all.
        """
        return count_parameters(self._sketch(configuration))

    def count_multiply_adds(self, configuration: Mapping[str, JsonScalar]) -> int:
        """Return the multiply-adds of one item; it is sent through the network, as shapes alone where that will do.

        Raises:
            InfeasibleArchitectureError: the configuration describes nothing that can be trained.
            UnbuildableNetworkError: it can only be built with other inputs, or not at all.
        """
        try:
            return count_multiply_adds_of(self._sketch(configuration), *self._example.inputs)
        except InfeasibleArchitectureError:
            raise
        except Exception as error:  # a person's network may raise anything where nothing has a value
            logger.debug("shapes alone do not run the network: %s: %s", type(error).__name__, error)
        network = self._real(configuration)
        inputs = self._answered_inputs(network)
        return refused_in_words(lambda: try_and_count_multiply_adds(network, *inputs)) // len(inputs[0])

    def estimate_memory_bytes(
        self, configuration: Mapping[str, JsonScalar], training: TrainConfig, *, ranks: int
    ) -> int | None:
        """Return what a rank of a training needs at most, with the whole network; None: shapes alone do not tell it."""
        is_half = training.precision in ("bf16", "fp16")
        sketch = self._sketch(configuration)
        estimate = estimate_memory(sketch, self._example, training, ranks=ranks, is_half=is_half)
        return None if estimate is None else estimate.peak

    def measure_latency_ms(self, configuration: Mapping[str, JsonScalar], device: str) -> float:
        """Return the median time in which the network answers one item, in milliseconds; on a CPU in one thread.

        It is that of two items where the network cannot answer one alone.
        """
        network = self._real(configuration)
        inputs = self._answered_inputs(network)
        with one_cpu_thread():
            return measure_latency_ms(network.to(device), *inputs, items=len(inputs[0]))

    def _sketch(self, configuration: Mapping[str, JsonScalar]) -> nn.Module:
        """Build the network without memory; where its code needs values, with memory."""
        try:
            with torch.device("meta"):
                return build_network(self._space, configuration, self.problem)
        except InfeasibleArchitectureError:
            raise
        except Exception as error:  # as above
            logger.debug("the network is not built without memory: %s: %s", type(error).__name__, error)
        return self._real(configuration)

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
