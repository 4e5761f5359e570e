"""How a training that left the numbers is told: a loss that is none, and gradients that are none in step after step."""

from trainers.errors import NonFiniteLossError

__all__ = ["check_finite", "check_steps"]

MOST_SKIPPED = 8
"""Steps in a row that fp16 may skip, through a whole epoch. Each halves the scale of the loss, which begins at 65,536;
gradients that overflow with a 256th of that are hardly saved by a smaller one."""

_ADVICE = "try a smaller learning_rate, a longer warm-up (warmup_fraction), gradient_clip, or bf16 instead of fp16"


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
        f"precision={precision}); last good checkpoint: {checkpoint or 'none'}; {_ADVICE}"
    )


def check_steps(made: int, skipped_in_a_row: int, *, epoch: int, precision: str, checkpoint: str | None) -> None:
    """Refuse to go on with a training whose every step is skipped.

    Args:
        made: optimizer steps of the epoch that were made.
        skipped_in_a_row: steps that were skipped since the last one that was made, in earlier epochs, too.
        epoch: epoch, counted from 1; in the first one the scale of the loss may still be looked for.
        precision: the precision really used.
        checkpoint: path of the last good checkpoint, or None.

    Raises:
        NonFiniteLossError: none was made, and enough were tried.
    """
    if made > 0 or epoch == 1 or skipped_in_a_row < MOST_SKIPPED:
        return
    raise NonFiniteLossError(
        f"no step of epoch {epoch} was made: the gradients of the last {skipped_in_a_row} steps were NaN or infinite "
        f"(precision={precision}); give precision bf16 or fp32, or a smaller learning_rate; last good checkpoint: "
        f"{checkpoint or 'none'}"
    )
