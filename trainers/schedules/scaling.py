"""How the peak learning rate follows the size of the batch."""

from trainers.config import LearningRateScaling

__all__ = ["scaled_learning_rate"]


def scaled_learning_rate(
    learning_rate: float, how: LearningRateScaling, *, batch_size: int, reference_batch_size: int
) -> float:
    """Return the learning rate of a batch size, given that of another one.

    Args:
        learning_rate: good for batches of `reference_batch_size`.
        how: `linear`, which keeps what SGD learns from an item; `sqrt`, which keeps the noise of the gradient, and is
            the rule for Adam and its relatives; `none`.
        batch_size: items per optimizer step over all ranks and micro-batches.
        reference_batch_size: items per step that `learning_rate` was found with.

    Source: linear: Goyal et al. 2017, arXiv 1706.02677, section 2.1; sqrt: Krizhevsky 2014, arXiv 1404.5997, section
        5, and for Adam Malladi et al. 2022, arXiv 2205.10287, section 5.
    """
    ratio = batch_size / reference_batch_size
    if how == "linear":
        return learning_rate * ratio
    if how == "sqrt":
        return float(learning_rate * ratio**0.5)
    return learning_rate
