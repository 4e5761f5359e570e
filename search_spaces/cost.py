"""What a network costs: exact counts of its weights and of the multiply-adds of one pass.

Counting is arithmetic on shapes: a network may live on the `meta` device, where it has no memory at all.
"""

import torch
from torch import nn
from torch.func import functional_call
from torch.utils.flop_counter import FlopCounterMode

__all__ = ["count_multiply_adds", "count_multiply_adds_of", "count_parameters"]


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
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    shadows = {name: torch.empty_like(tensor, device="meta") for name, tensor in tensors.items()}
    training = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            functional_call(model, shadows, tuple(torch.empty_like(part, device="meta") for part in inputs))
    finally:
        for module, flag in training:
            module.training = flag
    return int(counter.get_total_flops()) // 2
