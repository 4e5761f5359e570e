"""What keeps copies of one network on several ranks equal: the buffers to share, and checksums that tell them apart."""

import torch
from torch import nn

__all__ = ["buffers_to_share", "checksum"]

_INTEGER_OF_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def buffers_to_share(network: nn.Module) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return the buffers to average and those to copy, each tensor once, in the order of the modules."""
    averaged: dict[int, torch.Tensor] = {}
    copied: dict[int, torch.Tensor] = {}
    for module in network.modules():
        is_norm = isinstance(module, nn.modules.batchnorm._NormBase)
        for buffer in module.buffers(recurse=False):
            if is_norm and buffer.is_floating_point():
                averaged.setdefault(id(buffer), buffer)
            elif buffer.numel():
                copied.setdefault(id(buffer), buffer)
    return list(averaged.values()), list(copied.values())


def checksum(tensor: torch.Tensor) -> torch.Tensor:
    """Return two int64 sums over the bits of a tensor; overflow wraps around, which is as good."""
    values = tensor.detach().reshape(-1)
    if values.is_complex():
        values = torch.view_as_real(values).reshape(-1)
    bits = values.contiguous().view(_INTEGER_OF_SIZE[values.element_size()]).to(torch.int64)
    return torch.stack([bits.sum(), (bits * bits).sum()])
