"""How long a network takes to answer, measured on the device that it is on."""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

__all__ = ["measure_latency_ms", "one_cpu_thread"]

WARM_UP = 3
"""Passes before the first that counts: they find the memory and the algorithms that later ones use again."""
MOST_RUNS = 30
LEAST_RUNS = 3
ENOUGH_S = 0.3
"""A measurement ends after so many seconds, once it has its least runs."""


def measure_latency_ms(model: nn.Module, *inputs: torch.Tensor, items: int = 1) -> float:
    """Return the median time of a forward pass without gradients, in milliseconds.

    It runs in evaluation mode; weights, buffers and training flags stay what they are. On a GPU each pass is waited
    for. Whatever else computes on the machine meanwhile is in the time; see also `one_cpu_thread`.

    Args:
        model: on the device that is meant.
        inputs: the arguments of its forward for one item; they are brought to that device.
        items: how many pass at a time; the one item is repeated.

    Raises:
        ValueError: the model is on the `meta` device, or `items` is below 1.
    """
    device = _device_of(model)
    if device.type == "meta" or items < 1:
        raise ValueError(f"items={items} on the device '{device}': give 1 or more, and a model that has memory")
    batch = tuple(part[:1].to(device).expand(items, *part.shape[1:]).contiguous() for part in inputs)
    flags = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        with torch.inference_mode():
            return statistics.median(_times_ms(model, batch, device))
    finally:
        for module, flag in flags:
            module.training = flag


@contextmanager
def one_cpu_thread() -> Iterator[None]:
    """Let torch compute in one thread of the CPU, so that a time depends less on the machine and on what else runs."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _times_ms(model: nn.Module, batch: tuple[torch.Tensor, ...], device: torch.device) -> list[float]:
    times: list[float] = []
    began = time.perf_counter()
    for run in range(WARM_UP + MOST_RUNS):
        _wait_for(device)
        start = time.perf_counter()
        model(*batch)
        _wait_for(device)
        end = time.perf_counter()
        # Of a network that is slow the first pass is as good as any.
        if run >= WARM_UP or end - began > ENOUGH_S:
            times.append(1000.0 * (end - start))
        if len(times) >= LEAST_RUNS and end - began > ENOUGH_S:
            break
    return times


def _wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _device_of(model: nn.Module) -> torch.device:
    tensor = next(iter([*model.parameters(), *model.buffers()]), None)
    return torch.device("cpu") if tensor is None else tensor.device
