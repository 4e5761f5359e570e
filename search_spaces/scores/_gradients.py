"""The gradient of the loss on one batch, which several scores look at."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from search_spaces.scores import NoScoreError
from search_spaces.twins import twin

__all__ = ["kernels_and_gradients"]


def kernels_and_gradients(model: nn.Module, inputs: tuple[Tensor, ...], targets: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Return each kernel with the gradient of the mean loss: cross entropy of classes, squared error of numbers.

    Raises:
        NoScoreError: the network has no kernel that is trained.
    """
    with twin(model) as lent:
        kernels = lent.kernels()
        if not kernels:
            raise NoScoreError("no weight of two dimensions or more is trained")
        loss = _mean_loss(lent(*inputs), targets)
        gradients = torch.autograd.grad(loss, kernels, materialize_grads=True)
    return [(kernel.detach(), gradient) for kernel, gradient in zip(kernels, gradients, strict=True)]


def _mean_loss(answers: Tensor, targets: Tensor) -> Tensor:
    if targets.is_floating_point() and targets.dim() == 1:
        # answers are (N,) or (N, 1)
        return functional.mse_loss(answers.reshape(len(targets)), targets)
    return functional.cross_entropy(answers, targets)
