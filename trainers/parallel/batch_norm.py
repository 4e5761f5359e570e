"""Batch normalisation over the items of all ranks: mean and spread are those of the whole batch, however it is cut.

torch's own `SyncBatchNorm` computes the same on GPUs alone; this one computes wherever the ranks can send each other
tensors, in two small collectives for each layer and pass, and a rank may have any number of the items, or none.

Shapes: N items of this rank, C channels, any further dimensions; a name that ends in `_NC` means all of them.

Source: Ioffe and Szegedy 2015, arXiv 1502.03167, algorithm 1 and the gradients of section 3; parts of a sample are
    joined as in Chan, Golub and LeVeque 1979, Updating formulae and a pairwise algorithm for computing sample
    variances.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

import torch
import torch.distributed as dist
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from trainers.config import TrainConfig
from trainers.errors import UserCodeError

__all__ = ["SharedStatistics", "batch_norm_layers", "synchronises_nothing", "whose_statistics"]

_Gradients: TypeAlias = tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None, None, None, None]
_KNOWN_FORWARDS: tuple[Callable[..., torch.Tensor], ...] = (_BatchNorm.forward, nn.SyncBatchNorm.forward)


class SharedStatistics:
    """Lets layers of batch normalisation use the statistics of all ranks' items while they train.

    The layers stay the objects that they are, with their weights and buffers: only how they compute is exchanged, so
    that whoever refers to one calls the same, and checkpoints have the same names. In evaluation mode nothing changes.
    All ranks must call the layers in the same order; afterwards the running statistics are equal on all of them.

    Args:
        layers: what `batch_norm_layers` returned; none: nothing is shared.
        group: the ranks; None: this one is alone, and nothing is shared.
    """

    def __init__(self, layers: Sequence[_BatchNorm], group: dist.ProcessGroup | None) -> None:
        self._layers = tuple(layers) if group is not None else ()
        self._group = group
        self._counts = True

    def begin(self) -> None:
        """Exchange how the layers compute; `end` must follow."""
        for layer in self._layers:
            # A function of the object goes before the one of its class; no weight and no buffer moves.
            layer.forward = partial(self._forward, layer)  # type: ignore[method-assign]  # as said

    def end(self) -> None:
        """Let the layers compute as before."""
        for layer in self._layers:
            vars(layer).pop("forward", None)

    @contextmanager
    def without_items(self, network: nn.Module) -> Iterator[None]:
        """Let a network compute something that counts nowhere, where this rank has no items and the others have.

        It is in evaluation mode then, but for the layers here that train: they take the others' statistics.
        """
        training = [layer for layer in self._layers if layer.training]
        network.eval()
        for layer in training:
            layer.train()
        self._counts = False
        try:
            yield
        finally:
            self._counts = True
            network.train()

    @torch.compiler.disable  # type: ignore[untyped-decorator]  # torch leaves it untyped; collectives stay outside
    def _forward(self, layer: _BatchNorm, inputs_NC: torch.Tensor) -> torch.Tensor:
        if not layer.training:
            answers: torch.Tensor = type(layer).forward(layer, inputs_NC)
            return answers
        layer._check_input_dim(inputs_NC)  # type: ignore[no-untyped-call]  # torch
        normalised_NC, mean_C, variance_C, count = _Normalised.apply(  # type: ignore[no-untyped-call]  # torch
            inputs_NC, layer.weight, layer.bias, layer.eps, self._counts, self._group
        )
        if not self._counts or inputs_NC.numel() <= inputs_NC.shape[1]:  # several values of its own tell a rank enough
            _check_count(inputs_NC, count)
        if layer.track_running_stats:
            _track(layer, mean_C, variance_C, count)
        result: torch.Tensor = normalised_NC
        return result


def batch_norm_layers(network: nn.Module) -> list[_BatchNorm]:
    """Return the layers of batch normalisation, each once.

    Raises:
        UserCodeError: one of them computes in a way of its own.
    """
    found = [(name, layer) for name, layer in network.named_modules() if isinstance(layer, _BatchNorm)]
    strange = [f"{name or 'it'} ({type(layer).__name__})" for name, layer in found if not _is_known(layer)]
    if strange:
        raise UserCodeError(
            f"batch_norm=synchronised knows how torch's own layers compute, and these have a `forward` of their own: "
            f"{', '.join(strange)}; use batch_norm=local, or nn.BatchNorm1d, 2d or 3d"
        )
    return [layer for _, layer in found]


def synchronises_nothing(network: nn.Module, training: TrainConfig, ranks: int) -> bool:
    """Whether ranks are to share statistics, and the network has no layer that takes any."""
    return training.batch_norm == "synchronised" and ranks > 1 and not _has_layers(network)


def whose_statistics(network: nn.Module, training: TrainConfig, ranks: int, items: int) -> str | None:
    """Say in words whose items batch normalisation takes the statistics of, where it is not all items of each step.

    Args:
        network: the whole network.
        training: says how a batch is cut.
        ranks: how many share a training.
        items: of a whole batch.

    Returns:
        Such as `per rank, 32 of 64 items`; None where there is no such layer, or one rank computes whole batches.
    """
    if not _has_layers(network):
        return None
    is_pipeline = training.parallel == "pipeline" and ranks > 1
    parts = -(-items // training.micro_batch(ranks if is_pipeline else 1))
    together = -(-items // parts)  # by all ranks at a time, at most
    if is_pipeline or (ranks == 1 and parts > 1):
        return f"per micro-batch, {together} of {items} items"
    if ranks == 1:
        return None
    if training.batch_norm == "synchronised":
        return f"over all ranks, {together} of {items} items"
    return f"per rank, {-(-together // ranks)} of {items} items"


class _Normalised(torch.autograd.Function):
    """Normalises each channel by its mean and its spread over all ranks, on the way forward and back."""

    @staticmethod
    def forward(
        context: Any,  # torch's, which takes any name
        inputs_NC: torch.Tensor,
        weight_C: torch.Tensor | None,
        bias_C: torch.Tensor | None,
        eps: float,
        counts: bool,
        group: dist.ProcessGroup,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the answers, and over all ranks mean, variance (of the sample) and number of values per channel."""
        exact = torch.promote_types(inputs_NC.dtype, torch.float32)
        mean_C, variance_C, count = _joined(_own_statistics(inputs_NC, counts), group, exact)
        context.save_for_backward(inputs_NC, weight_C, mean_C, variance_C, count)
        context.eps, context.counts, context.group = eps, counts, group
        answers_NC = functional.batch_norm(inputs_NC, mean_C, variance_C, weight_C, bias_C, training=False, eps=eps)
        context.mark_non_differentiable(mean_C, variance_C, count)
        return answers_NC, mean_C, variance_C, count

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradients_NC: torch.Tensor, *_: torch.Tensor) -> _Gradients:
        """Return the gradients: those of the inputs from all ranks' answers, those of the weights from one's own."""
        inputs_NC, weight_C, mean_C, variance_C, count = context.saved_tensors
        wanted = context.needs_input_grad
        # What is subtracted below is nearly as large as what it is subtracted from, and both may be too large for
        # numbers of two bytes; only the difference goes back to the inputs' format.
        exact = mean_C.dtype
        exact_NC = inputs_NC.to(exact)
        exact_weight_C = None if weight_C is None else weight_C.to(exact)
        # As if mean and variance were fixed; what goes through them comes below.
        to_inputs_NC, to_weight_C, to_bias_C = torch.ops.aten.native_batch_norm_backward(
            gradients_NC.to(exact), exact_NC, exact_weight_C, mean_C, variance_C, None, None, False, context.eps,
            [wanted[0], True, True],
        )  # fmt: skip
        if wanted[0]:
            sums_2C = torch.cat([to_bias_C, to_weight_C])
            if exact_weight_C is not None:
                sums_2C = sums_2C * exact_weight_C.repeat(2)
            dist.all_reduce(sums_2C, group=context.group)
            if context.counts:
                to_inputs_NC -= _through_statistics(exact_NC, mean_C, variance_C + context.eps, sums_2C / count)
            to_inputs_NC = to_inputs_NC.to(inputs_NC.dtype)
        kind = exact if weight_C is None else weight_C.dtype
        return (
            to_inputs_NC if wanted[0] else None,
            to_weight_C.to(kind) if wanted[1] else None,
            to_bias_C.to(kind) if wanted[2] else None,
            None,
            None,
            None,
        )


def _through_statistics(
    inputs_NC: torch.Tensor, mean_C: torch.Tensor, variance_C: torch.Tensor, means_2C: torch.Tensor
) -> torch.Tensor:
    """Return what the inputs' gradients lose as each input moves mean and spread: all in the format of the statistics.

    Args:
        inputs_NC: of this rank.
        mean_C: over all ranks.
        variance_C: over all ranks, with the small number that keeps it from 0.
        means_2C: over all ranks, of the gradients with respect to the normalised inputs, and of these times those.
    """
    scale_C = variance_C.rsqrt()
    mean_gradient_C, mean_product_C = means_2C.chunk(2)
    # The mean goes first: where it is much larger than the spread, two large numbers would cancel.
    centred_NC = inputs_NC - _spread(mean_C, inputs_NC)
    slope_C = scale_C.square() * mean_product_C
    return centred_NC.mul_(_spread(slope_C, inputs_NC)).add_(_spread(scale_C * mean_gradient_C, inputs_NC))


def _own_statistics(inputs_NC: torch.Tensor, counts: bool) -> torch.Tensor:
    """Return (2 C + 1,) float64: mean, variance and number of this rank's values of each channel."""
    channels = inputs_NC.shape[1]
    if not counts or not inputs_NC.numel():
        return torch.zeros(2 * channels + 1, dtype=torch.float64, device=inputs_NC.device)
    # Numbers of two bytes as float32: sums of many of them would be rounded too much.
    exact_NC = inputs_NC.to(torch.promote_types(inputs_NC.dtype, torch.float32))
    all_but_channels = [dimension for dimension in range(inputs_NC.dim()) if dimension != 1]
    variance_C, mean_C = torch.var_mean(exact_NC, all_but_channels, correction=0)
    count = torch.full((1,), inputs_NC.numel() // channels, dtype=torch.float64, device=inputs_NC.device)
    return torch.cat([mean_C.double(), variance_C.double(), count])


def _joined(
    own: torch.Tensor, group: dist.ProcessGroup, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Join the statistics of all ranks, in the same order on each, so that the results are the same to the last bit."""
    all_of_them = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(all_of_them, own, group=group)
    statistics = torch.stack(all_of_them)  # (ranks, 2 C + 1)
    means_RC, variances_RC = statistics[:, :-1].chunk(2, dim=1)
    counts_R1 = statistics[:, -1:]
    count = counts_R1.sum()
    mean_C = (counts_R1 * means_RC).sum(0) / count
    variance_C = (counts_R1 * (variances_RC + (means_RC - mean_C).square())).sum(0) / count
    return mean_C.to(dtype), variance_C.to(dtype), count


def _check_count(inputs_NC: torch.Tensor, count: torch.Tensor) -> None:
    """Refuse what has no spread, as batch normalisation on one rank does; waits for the device."""
    if float(count) < 2:
        raise ValueError(
            f"batch normalisation needs more than 1 value per channel to train, got {int(count)} over all ranks "
            f"(input of shape {tuple(inputs_NC.shape)}); use a larger batch_size or less accumulate"
        )


@torch.no_grad()
def _track(layer: _BatchNorm, mean_C: torch.Tensor, variance_C: torch.Tensor, count: torch.Tensor) -> None:
    """Move the running statistics towards those of a batch; its variance as that of the whole population."""
    if layer.num_batches_tracked is not None:
        layer.num_batches_tracked.add_(1)
    momentum = 1.0 / float(layer.num_batches_tracked or 1) if layer.momentum is None else layer.momentum
    population_C = variance_C * (count / (count - 1))
    for running_C, latest_C in ((layer.running_mean, mean_C), (layer.running_var, population_C)):
        if running_C is not None:
            running_C.lerp_(latest_C.to(running_C.dtype), momentum)


def _has_layers(network: nn.Module) -> bool:
    return any(isinstance(layer, _BatchNorm) for layer in network.modules())


def _is_known(layer: _BatchNorm) -> bool:
    return "forward" not in vars(layer) and type(layer).forward in _KNOWN_FORWARDS


def _spread(per_channel_C: torch.Tensor, like_NC: torch.Tensor) -> torch.Tensor:
    """Give one number per channel the shape (1, C, 1, ...)."""
    return per_channel_C.view(1, -1, *[1] * (like_NC.dim() - 2))
