"""Out of memory: what a trial is tried again with, and how often; pure arithmetic and what is remembered on a trial.

A device that is full takes half the micro-batch: the optimizer steps, and so the result, stay the same. A process that
the system has ended for want of memory is tried again once (`automl/retries.py`). What a network needs by itself does
not depend on the micro-batch: one for which there is no room is not tried again.
"""

from studies.trial import Trial
from trainers.config import TrainConfig
from trainers.trainer import Trainer

__all__ = [
    "ACCUMULATE",
    "MEMORY_KILLS",
    "MICRO_BATCH",
    "MOST_KILLS",
    "cuts_batches",
    "kept_number",
    "more_parts",
]

ACCUMULATE = "accumulate"
"""The attribute of a trial that ran out of device memory: micro-batches per step that it goes on with, or more."""
MEMORY_KILLS = "memory_kills"
"""The attribute of a trial whose process was ended for want of memory: how often."""
MICRO_BATCH = "micro_batch"
"""The fact about a trial: most items that a rank has computed at a time."""
MOST_KILLS = 1
"""How often a trial is tried again after its process was ended for want of memory."""


def cuts_batches(trainer: Trainer) -> bool:
    """Whether a trainer cuts its batches as it is told: then it lists `accumulate` among its hyperparameters."""
    return ACCUMULATE in trainer.hyperparameters


def more_parts(training: TrainConfig, ranks: int) -> int | None:
    """Micro-batches per step that need about half the memory; None when a rank computes single items already."""
    if training.micro_batch(ranks) <= 1:
        return None
    return min(2 * training.accumulate, -(-training.batch_size // ranks))


def kept_number(trial: Trial, name: str, default: int) -> int:
    """A whole number among the attributes of a trial; `default` where there is none, as when it never went wrong."""
    value = trial.attributes.get(name)
    return value if isinstance(value, int) else default
