"""What is minimised, and how a training that left the numbers is told."""

import torch
from torch.nn import functional

from trainers.errors import NonFiniteLossError

__all__ = ["check_finite", "cross_entropy_sum"]


def cross_entropy_sum(logits_NK: torch.Tensor, labels_N: torch.Tensor, label_smoothing: float = 0.0) -> torch.Tensor:
    """Return the cross entropy summed over the items, computed in float32 whatever the logits are.

    A sum, not a mean: only the caller knows over how many items of how many ranks and micro-batches the mean goes.

    Args:
        logits_NK: (N, K) unnormalised; N may be 0.
        labels_N: (N,) int64 in [0, K).
        label_smoothing: share of the target spread evenly over all K classes, in [0, 1).

    Source: Szegedy et al. 2016, arXiv 1512.00567, section 7.
    """
    return functional.cross_entropy(logits_NK.float(), labels_N, reduction="sum", label_smoothing=label_smoothing)


def check_finite(
    loss: float,
    *,
    name: str,
    step: int | None,
    epoch: int,
    learning_rate: float,
    precision: str,
    checkpoint: str | None,
) -> None:
    """Refuse a loss or objective that is NaN or infinite.

    Args:
        loss: the value.
        name: what it is (`loss`, `validation loss`, ...).
        step: optimizer step, counted from 1 over the whole training; None: measured after the epoch.
        epoch: epoch, counted from 1.
        learning_rate: the learning rate of that step.
        precision: the precision really used.
        checkpoint: path of the last good checkpoint, or None.

    Raises:
        NonFiniteLossError: it is NaN or infinite.
    """
    if loss - loss == 0.0:
        return
    at = f"at step {step} (epoch {epoch}" if step is not None else f"after epoch {epoch} ("
    raise NonFiniteLossError(
        f"{name} is {loss} {at}{', ' if step is not None else ''}learning_rate={learning_rate:.4g}, "
        f"precision={precision}); last good checkpoint: {checkpoint or 'none'}"
    )
