"""Gradients that are sent in fewer bits than they are kept in."""

import torch
import torch.distributed as dist

__all__ = ["average_in_bf16"]


def average_in_bf16(
    group: dist.ProcessGroup,
    bucket: dist.GradBucket,  # type: ignore[name-defined]  # torch exports it without saying so
) -> torch.futures.Future[torch.Tensor]:
    """Average some gradients over a group in bfloat16: half the bytes of float32, and 8 bits of each number.

    A hook for `DistributedDataParallel.register_comm_hook`. All ranks get the same numbers.
    """
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook

    # Under its own name torch would refuse it without NCCL, though gloo adds bfloat16, too.
    average: torch.futures.Future[torch.Tensor] = bf16_compress_hook(group, bucket)
    return average
