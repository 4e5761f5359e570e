"""What all problems of telling classes apart have in common."""

import torch
from torch import nn

from trainers.errors import UserCodeError

__all__ = ["check_logits"]


def check_logits(network: nn.Module, inputs: tuple[torch.Tensor, ...], num_classes: int) -> None:
    """Try a network with one item.

    Raises:
        UserCodeError: the answer is no tensor of one logit per class.
    """
    network.eval()
    with torch.no_grad():
        logits = network(*inputs)
    shape = tuple(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
    if shape != (1, num_classes):
        raise UserCodeError(
            f"the network answers one item of shape {' and '.join(str(tuple(part.shape[1:])) for part in inputs)} "
            f"with {shape}; needed: logits of shape {(1, num_classes)}"
        )
