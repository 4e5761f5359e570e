"""How much the loss would change if single weights were cut out."""

from torch import Tensor, nn

from search_spaces.scores._gradients import kernels_and_gradients

__all__ = ["snip"]


def snip(model: nn.Module, inputs: tuple[Tensor, ...], targets: Tensor) -> float:
    """Return the sum of |weight * gradient of the loss| over the kernels of all layers.

    Raises:
        NoScoreError: the network has no kernel that is trained.

    Source: Lee et al. 2019, SNIP: Single-shot Network Pruning, arXiv 1810.02340, equation 4, summed over the network
        as in Abdelfattah et al. 2021, arXiv 2101.08134, equation 1.
    """
    pairs = kernels_and_gradients(model, inputs, targets)
    return sum(float((kernel * gradient).abs().sum()) for kernel, gradient in pairs)
