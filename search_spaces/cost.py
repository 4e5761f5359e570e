"""What a network costs: exact counts of its weights and of the multiply-adds of one pass, and the memory it keeps.

Multiply-adds are counted one way, on shapes or in a real pass: kernels that fuse several products are taken apart, or
have a formula, so that both passes tell the same number. Counting is arithmetic on shapes: a network may live on the
`meta` device, where it has no memory at all. How long a pass takes is measured by `search_spaces.latency`, and what a
whole training needs is told by `trainers.estimates`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from search_spaces.latency import measure_latency_ms
from search_spaces.way_back import kept_for_the_way_back

__all__ = [
    "NetworkCosts",
    "PartCosts",
    "costs",
    "costs_of_parts",
    "count_multiply_adds",
    "count_multiply_adds_of",
    "count_parameters",
    "try_and_count_multiply_adds",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCosts:
    """What one network costs, before any training.

    Attributes:
        parameters: weights, trainable and frozen ones; one that is used in two places counts once.
        multiply_adds: of the convolutions and matrix products of one forward pass of one item.
        weight_bytes: memory of the weights and buffers.
        activation_bytes: memory that a training step keeps of one item out of two until it has gone back, in the format
            of the weights, without the weights themselves.
        latency_ms: median time of one forward pass without gradients, in milliseconds; None: it was not measured.
    """

    parameters: int
    multiply_adds: int
    weight_bytes: int
    activation_bytes: int
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartCosts:
    """What a part of a network costs.

    Attributes:
        name: of the attribute that holds it.
        kind: name of its class.
        parameters: its weights; one that another part has, too, counts in both.
        multiply_adds: as in `NetworkCosts`.
    """

    name: str
    kind: str
    parameters: int
    multiply_adds: int


def costs(model: nn.Module, *inputs: torch.Tensor, latency_of: int | None = None) -> NetworkCosts:
    """Return all costs of a network; weights, buffers, random states and training flags stay what they are.

    Args:
        model: on any device; on `meta` where no latency is wanted.
        inputs: the arguments of its forward for one item; where no latency is wanted, only shapes and types matter.
        latency_of: items that pass at a time when the latency is measured, on the model's device; None: it is not.

    Raises:
        RuntimeError: shapes alone cannot run the network; its own code may raise anything else.
    """
    kept = kept_for_the_way_back(model, inputs, items=2)  # batch normalisation has no spread of one row
    tensors = [*model.parameters(), *model.buffers()]
    return NetworkCosts(
        parameters=count_parameters(model),
        multiply_adds=count_multiply_adds_of(model, *inputs),
        weight_bytes=sum(tensor.numel() * tensor.element_size() for tensor in tensors),
        activation_bytes=sum(piece.size for piece in kept if not piece.is_weight) // 2,
        latency_ms=None if latency_of is None else measure_latency_ms(model, *inputs, items=latency_of),
    )


def costs_of_parts(model: nn.Module, *inputs: torch.Tensor) -> tuple[PartCosts, ...]:
    """Return the costs of the network's own modules, in their order; see `count_multiply_adds_of`.

    Multiply-adds that the network's own forward makes outside of them are in none of them.
    """
    counter = _count_on_shapes(model, inputs)
    counts, root = counter.get_flop_counts(), type(model).__name__
    return tuple(
        PartCosts(
            name=name,
            kind=type(part).__name__,
            parameters=count_parameters(part),
            multiply_adds=sum(counts.get(f"{root}.{name}", {}).values()) // 2,
        )
        for name, part in model.named_children()
    )


def count_parameters(model: nn.Module) -> int:
    """Return the number of trainable and frozen weights; one that is used in two places counts once.

    Example:
        >>> count_parameters(nn.Linear(10, 11))
        121
    """
    return sum(parameter.numel() for parameter in model.parameters())


def count_multiply_adds(model: nn.Module, input_shape: tuple[int, ...], *, dtype: torch.dtype = torch.float32) -> int:
    """Return the multiply-adds of one forward pass of one item; see `count_multiply_adds_of`.

    Args:
        model: on any device; its forward takes one tensor.
        input_shape: shape of one item, without the batch.
        dtype: type of the input; an integer type for networks that begin with an embedding.
    """
    return count_multiply_adds_of(model, torch.empty((1, *input_shape), dtype=dtype, device="meta"))


def count_multiply_adds_of(model: nn.Module, *inputs: torch.Tensor) -> int:
    """Return the multiply-adds of the convolutions and matrix products in one forward pass.

    Additions, normalisations and activations are not counted, as is usual. The pass runs in evaluation mode on shapes
    alone: no value is computed, and weights, buffers, random states and training flags are afterwards what they were.

    Args:
        model: on any device.
        inputs: the arguments of its forward, of which only shapes and types matter.
    """
    return int(_count_on_shapes(model, inputs).get_total_flops()) // 2


def try_and_count_multiply_adds(model: nn.Module, *inputs: torch.Tensor) -> int:
    """Return the same as `count_multiply_adds_of`, by a real pass in evaluation mode, without gradients.

    It also runs networks that shapes alone cannot, and small ones several times as fast, since torch's kernels for
    shapes are written in Python. Buffers and random states are what such a pass makes of them.

    Args:
        model: on the CPU; its training flags are afterwards what they were.
        inputs: the arguments of its forward, in as many items as are to be counted.

    Raises:
        RuntimeError: the network cannot take such inputs; its own code may raise anything else.
    """
    with _unfused_attention():
        return int(_count(model, lambda: model(*inputs)).get_total_flops()) // 2


def _lstm_flops(
    x: torch.Size, w_input: torch.Size, w_state: torch.Size, *_: object, out_shape: object, **__: object
) -> int:
    """Of one layer in one direction: its (4H, C) and (4H, H) weights meet each of the first two dimensions' items."""
    return 2 * x[0] * x[1] * (w_input.numel() + w_state.numel())


_FORMULAS: Final[dict[Any, Any]] = {torch.ops.aten.mkldnn_rnn_layer: _lstm_flops}
"""Kernels of the CPU that torch's counter has no formula for; on shapes they are products of matrices."""


@contextmanager
def _unfused_attention() -> Iterator[None]:
    """Let attention be computed as products of matrices, which the counter sees, instead of by one kernel."""
    is_fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(is_fast)


def _count_on_shapes(model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> FlopCounterMode:
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    shadows = {name: torch.empty_like(tensor, device="meta") for name, tensor in tensors.items()}
    shapes = tuple(torch.empty_like(part, device="meta") for part in inputs)
    return _count(model, lambda: functional_call(model, shadows, shapes))


def _count(model: nn.Module, run: Callable[[], object]) -> FlopCounterMode:
    training = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        counter: FlopCounterMode = FlopCounterMode(display=False, custom_mapping=_FORMULAS)
        with counter, torch.no_grad():
            run()
    finally:
        for module, flag in training:
            module.training = flag
    return counter
