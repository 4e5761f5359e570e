"""Synaptic flow: how much passes through all paths of a network, whatever the data and the signs of the weights."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.modules.batchnorm import _NormBase

from search_spaces.scores import NoScoreError
from search_spaces.twins import Twin, twin

__all__ = ["synflow"]

_NORMALISATIONS = (_NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)


def synflow(model: nn.Module, inputs: tuple[Tensor, ...], targets: Tensor) -> float:
    """Return the sum of weight * dR/dweight over the kernels of all layers, R being the sum of the answers to ones.

    All weights are taken without their signs. Normalisation is left out, since it would undo what the size of weights
    tells, and all is computed in double precision, since R is the product of what all layers do. Inputs that are no
    real numbers, such as tokens, cannot be ones: there it is the first item's.

    Raises:
        NoScoreError: the network has no kernel that is trained, or does not compute in double precision.

    Source: Tanaka et al. 2020, Pruning neural networks without any data by iteratively conserving synaptic flow,
        arXiv 2006.05467, equation 2; summed over the network, and without batch normalisation, as in Abdelfattah et
        al. 2021, arXiv 2101.08134, section 3.2, and the authors' code.
    """
    with twin(model, dtype=torch.float64, batch_statistics=False) as lent, _without_normalisation(model):
        kernels = lent.kernels()
        if not kernels:
            raise NoScoreError("no weight of two dimensions or more is trained")
        with torch.no_grad():
            for weight in (*lent.weights.values(), *lent.buffers.values()):
                weight.abs_()
        # The fused attention computes its softmax anew on the way back, and rounding makes nan of logits like 1e36.
        with sdpa_kernel(SDPBackend.MATH):
            flow = _answers(lent, tuple(map(_ones, inputs))).sum()
            gradients = torch.autograd.grad(flow, kernels, materialize_grads=True)
    pairs = zip(kernels, gradients, strict=True)
    return sum(float((kernel.detach() * gradient).abs().sum()) for kernel, gradient in pairs)


def _answers(lent: Twin, inputs: tuple[Tensor, ...]) -> Tensor:
    try:
        return lent(*inputs)
    except RuntimeError as error:
        raise NoScoreError(f"the network does not compute in double precision: {error}") from error


def _ones(part: Tensor) -> Tensor:
    if part.is_floating_point():
        return torch.ones_like(part[:1], dtype=torch.float64)
    return part[:1]


@contextmanager
def _without_normalisation(model: nn.Module) -> Iterator[None]:
    """Let what comes into a normalisation leave it unchanged."""
    layers = [module for module in model.modules() if isinstance(module, _NORMALISATIONS)]
    hooks = [layer.register_forward_hook(lambda layer, arguments, normalised: arguments[0]) for layer in layers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
