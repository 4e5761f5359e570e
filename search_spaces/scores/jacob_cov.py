"""How differently a network's answers depend on the inputs of different items."""

import torch
from torch import Tensor, nn

from search_spaces.scores import NoScoreError
from search_spaces.twins import twin

__all__ = ["jacob_cov"]

K = 1e-5
"""Keeps the logarithm of an eigenvalue of 0 finite (the authors' code)."""


def jacob_cov(model: nn.Module, inputs: tuple[Tensor, ...], targets: Tensor) -> float:
    """Return -sum(log(v + K) + 1 / (v + K)) over the eigenvalues v of the correlations between the items' gradients.

    It is the gradient of the sum of the answers by the inputs; the targets make no difference. Uncorrelated gradients
    have eigenvalues of 1 and the highest score.

    Raises:
        NoScoreError: no input is real numbers, as with tokens, or the gradient by an item is the same in all places.

    Source: Mellor et al. 2020, first version of arXiv 2006.04647, section 3; called jacob_cov in Abdelfattah et al.
        2021, arXiv 2101.08134.
    """
    leaves = tuple(_leaf(part) for part in inputs)
    real = [part for part in leaves if part.requires_grad and part[0].numel() > 0]
    if not real:
        raise NoScoreError("no gradient can be taken by the inputs, which are no real numbers")
    with twin(model) as lent:
        gradients = torch.autograd.grad(lent(*leaves).sum(), real, materialize_grads=True)
    jacobian_NF = torch.cat([gradient.flatten(start_dim=1) for gradient in gradients], dim=1).double()
    if bool((jacobian_NF.amax(dim=1) == jacobian_NF.amin(dim=1)).any()):
        raise NoScoreError("the gradient by an item is the same in all places, so that it correlates with nothing")
    correlations_NN = torch.corrcoef(jacobian_NF)
    if not bool(correlations_NN.isfinite().all()):
        raise NoScoreError("the gradient by the inputs left the range of numbers")
    eigenvalues_N = torch.linalg.eigvalsh(correlations_NN)
    return -float((torch.log(eigenvalues_N + K) + 1.0 / (eigenvalues_N + K)).sum())


def _leaf(part: Tensor) -> Tensor:
    return part.detach().clone().requires_grad_(part.is_floating_point())
