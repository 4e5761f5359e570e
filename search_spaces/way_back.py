"""What a micro-batch keeps for its way back through a network, and how much memory that takes at most.

Nothing is computed and nothing allocated: the batch goes forward on torch's `meta` device, where tensors have shapes
only, and what autograd keeps is written down.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import nn
from torch.func import functional_call

__all__ = ["Kept", "kept_for_the_way_back", "peak_on_the_way_back"]


class Kept(NamedTuple):
    """A piece of memory that is needed on the way back.

    Attributes:
        size: in bytes.
        is_weight: whether it is a weight, which is there anyway.
        has_gradient: whether its gradient, as large as itself, is computed.
    """

    size: int
    is_weight: bool
    has_gradient: bool


def kept_for_the_way_back(
    network: nn.Module, inputs: Sequence[torch.Tensor], items: int, *, is_half: bool = False
) -> list[Kept]:
    """Send a batch forward in training mode, and return what is kept of it, in that order, each piece once.

    Weights, buffers, training flags and random states are afterwards what they were.

    Args:
        network: on any device.
        inputs: the arguments of one item, of which only shapes and types matter.
        items: of the batch.
        is_half: whether operations compute in a format of two bytes; autocast itself does not work on `meta`.

    Raises:
        RuntimeError: shapes alone cannot run the network; its own code may raise anything else.
    """
    tensors = {**dict(network.named_parameters()), **dict(network.named_buffers())}
    shadows = {name: torch.empty_like(t, device="meta", requires_grad=t.requires_grad) for name, t in tensors.items()}
    batch = tuple(torch.empty((items, *part.shape[1:]), dtype=part.dtype, device="meta") for part in inputs)
    found: dict[int, torch.Tensor] = {_place(part): part for part in batch}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        found.setdefault(_place(tensor), tensor)
        return tensor

    flags = [(module, module.training) for module in network.modules()]
    try:
        network.train()
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            functional_call(network, shadows, batch)
    finally:
        for module, flag in flags:
            module.training = flag
    weights = {_place(shadow) for shadow in shadows.values()}
    return [_kept(tensor, place in weights, is_half) for place, tensor in found.items()]


def peak_on_the_way_back(kept: Sequence[Kept], *, gradients_stay: bool) -> int:
    """Return the most memory that a batch needs at a time, without weights.

    What was kept last is given back first. Meanwhile an operation needs its own gradient and that of its inputs, each
    about as large as what was kept for it, and the gradients of the weights gather.

    Args:
        kept: what `kept_for_the_way_back` returned.
        gradients_stay: whether those of the weights are there all the time, so that they are counted elsewhere.
    """
    held = sum(piece.size for piece in kept if not piece.is_weight)
    gathered, peak = 0, held
    for piece in reversed(kept):
        if piece.is_weight:
            gathered += piece.size if piece.has_gradient and not gradients_stay else 0
            continue
        peak = max(peak, held + gathered + (2 * piece.size if piece.has_gradient else 0))
        held -= piece.size
    return max(peak, gathered)


def _kept(tensor: torch.Tensor, is_weight: bool, is_half: bool) -> Kept:
    size = tensor.untyped_storage().nbytes()
    is_rounded = is_half and not is_weight and tensor.dtype == torch.float32
    has_gradient = tensor.requires_grad if is_weight else tensor.is_floating_point()
    return Kept(size=size // 2 if is_rounded else size, is_weight=is_weight, has_gradient=has_gradient)


def _place(tensor: torch.Tensor) -> int:
    """Identify the memory of a tensor, which views of it share."""
    place: int = tensor.untyped_storage()._cdata
    return place
