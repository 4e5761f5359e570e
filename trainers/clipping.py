"""The norm of a gradient, and its clipping: as `torch.nn.utils` does both, for gradients that lie on one device.

Torch first sorts gradients by device and number format; in a step of a small network that takes longer than the norms.
"""

import torch

__all__ = ["clip_gradients", "norm_of"]


def norm_of(gradients: list[torch.Tensor]) -> torch.Tensor:
    """Return the Euclidean norm of all gradients together, 0 of none; it stays on their device."""
    if not gradients:
        return torch.zeros(())
    norm: torch.Tensor = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    return norm


def clip_gradients(gradients: list[torch.Tensor], norm: torch.Tensor, largest: float) -> None:
    """Scale gradients in place, so that their norm is at most `largest`; nothing waits for the device.

    Source: Pascanu et al. 2013, arXiv 1211.5063, algorithm 1.
    """
    if not gradients:
        return
    torch._foreach_mul_(gradients, torch.clamp(largest / (norm + 1e-6), max=1.0))
