"""A twin of a network, which computes with copies of its weights, so that the network stays as it is."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm

__all__ = ["Twin", "twin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """The network with tensors of its own.

    Attributes:
        weights: name -> copy; gradients can be taken of those that are trained.
        buffers: name -> copy.
    """

    model: nn.Module
    weights: Mapping[str, Tensor]
    buffers: Mapping[str, Tensor]

    def __call__(self, *inputs: Tensor) -> Tensor:
        """Return the network's answers; the inputs stay as they are, even where its first layer writes to them."""
        own = tuple(part.clone() for part in inputs)
        answers: Tensor = functional_call(self.model, {**self.weights, **self.buffers}, own)
        return answers

    def kernels(self) -> list[Tensor]:
        """Return the trained weights of two dimensions or more: those of layers, without biases and normalisation."""
        return [weight for weight in self.weights.values() if weight.requires_grad and weight.dim() > 1]


@contextmanager
def twin(model: nn.Module, *, dtype: torch.dtype | None = None, batch_statistics: bool = True) -> Iterator[Twin]:
    """Lend a twin of a network; nothing random happens in it twice in different ways.

    Args:
        model: its training flags are others meanwhile.
        dtype: of the copies' floating-point numbers; None: as they are.
        batch_statistics: whether batch normalisation takes the statistics of the batch, as in training. All other
            layers are in evaluation mode: what dropout leaves out says nothing of the network.
    """
    own = model.named_parameters()
    weights = {name: _copy(weight, dtype).requires_grad_(weight.requires_grad) for name, weight in own}
    buffers = {name: _copy(buffer, dtype) for name, buffer in model.named_buffers()}
    flags = [(module, module.training) for module in model.modules()]
    devices = sorted({weight.device.index for weight in weights.values() if weight.device.type == "cuda"})
    try:
        model.eval()
        for module in model.modules():
            module.training = batch_statistics and isinstance(module, _BatchNorm)
        with torch.random.fork_rng(devices=devices), torch.enable_grad():
            for generator in (torch.default_generator, *(torch.cuda.default_generators[index] for index in devices)):
                generator.manual_seed(0)
            yield Twin(model=model, weights=weights, buffers=buffers)
    finally:
        for module, flag in flags:
            module.training = flag


def _copy(tensor: Tensor, dtype: torch.dtype | None) -> Tensor:
    is_changed = dtype is not None and tensor.is_floating_point()
    return tensor.detach().to(dtype if is_changed else tensor.dtype, copy=True)
