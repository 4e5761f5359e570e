"""Weights that are cut over ranks (torch's DTensor), for optimizers that must know."""

import torch

__all__ = ["is_sharded", "own_part", "shard_like", "whole"]


def is_sharded(tensor: torch.Tensor) -> bool:
    """Whether a tensor is cut over ranks."""
    # Told by what only a DTensor has: to load its module takes half a second, which a training on one rank saves.
    return hasattr(tensor, "full_tensor")


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor in one piece; a collective where it is cut over ranks."""
    if not is_sharded(tensor):
        return tensor
    full: torch.Tensor = tensor.full_tensor()  # type: ignore[attr-defined]  # of a DTensor, see is_sharded
    return full


def own_part(tensor: torch.Tensor) -> torch.Tensor:
    """Return this rank's part of a tensor, or the tensor that is whole; it is no copy."""
    if not is_sharded(tensor):
        return tensor
    part: torch.Tensor = tensor.to_local()  # type: ignore[attr-defined]  # of a DTensor, see is_sharded
    return part


def shard_like(full: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Cut a tensor that every rank has whole as a weight is cut; nothing is sent."""
    if not is_sharded(weight):
        return full
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(weight, DTensor)
    return distribute_tensor(full, weight.device_mesh, weight.placements, src_data_rank=None)
