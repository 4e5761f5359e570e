"""The norm of the gradient of an untrained network."""

from torch import Tensor, nn

from search_spaces.scores._gradients import kernels_and_gradients

__all__ = ["gradient_norm"]


def gradient_norm(model: nn.Module, inputs: tuple[Tensor, ...], targets: Tensor) -> float:
    """Return the sum of the Euclidean norms of the loss's gradients by the kernels of all layers.

    Raises:
        NoScoreError: the network has no kernel that is trained.

    Source: Abdelfattah et al. 2021, Zero-Cost Proxies for Lightweight NAS, arXiv 2101.08134, section 3.2
        (grad_norm). Biases and normalisation are left out, as in the authors' code.
    """
    return sum(float(gradient.norm()) for _, gradient in kernels_and_gradients(model, inputs, targets))
