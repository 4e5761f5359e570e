"""The learning rate as a pure function of the step: the schedules by name, each in a module of its own.

There is nothing to store and nothing to step: a resumed training asks for its next step.
"""

from collections.abc import Callable
from typing import TypeAlias

from trainers.config import TrainConfig
from trainers.schedules.cosine import warmup_cosine

__all__ = ["Schedule", "build_schedule"]

Schedule: TypeAlias = Callable[[int], float]
"""Number of optimizer steps made before, from 0 -> learning rate of the next step."""


def build_schedule(training: TrainConfig, total_steps: int) -> Schedule:
    """Return the schedule of a configuration.

    Args:
        training: names it and its peak.
        total_steps: optimizer steps of the whole training, at least 1.
    """
    warmup_steps = round(training.warmup_fraction * total_steps)
    return lambda step: training.learning_rate * warmup_cosine(step, total_steps, warmup_steps)
