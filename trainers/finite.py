"""How a training that left the numbers is told."""

from trainers.errors import NonFiniteLossError

__all__ = ["check_finite"]


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
