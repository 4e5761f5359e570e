"""Gradient scaling where each rank has gradients of its own: what one of them overflows, none of them steps."""

import torch
import torch.distributed as dist

__all__ = ["SharedScaler"]


class SharedScaler(torch.amp.GradScaler):
    """A gradient scaler whose ranks find an infinite gradient together; all of them call `unscale_` and `step` alike.

    Torch's own ShardedGradScaler asks the other ranks in `unscale_` alone, where fused optimizers need not go, and
    gives them what it found in a shape that Adam refuses.

    Args:
        device: where this rank computes.
        group: of the ranks, for tensors on that device.
    """

    def __init__(self, device: torch.device, group: dist.ProcessGroup) -> None:
        super().__init__(device.type)
        self._own_device, self._group = device, group

    def _unscale_grads_(
        self, optimizer: torch.optim.Optimizer, inv_scale: torch.Tensor, found_inf: torch.Tensor, allow_fp16: bool
    ) -> dict[torch.device, torch.Tensor]:
        found = super()._unscale_grads_(optimizer, inv_scale, found_inf, allow_fp16)
        own = found.setdefault(self._own_device, torch.zeros((), device=self._own_device))
        dist.all_reduce(own, group=self._group)
        return found
