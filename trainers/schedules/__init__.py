"""The learning rate as a pure function of the step: the schedules by name, each in a module of its own.

There is nothing to store and nothing to step: a resumed training asks for its next step.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from trainers.config import TrainConfig
from trainers.schedules.constant import constant
from trainers.schedules.cosine import cosine
from trainers.schedules.linear import linear
from trainers.schedules.one_cycle import one_cycle
from trainers.schedules.polynomial import polynomial
from trainers.schedules.scaling import scaled_learning_rate
from trainers.schedules.stepwise import stepwise
from trainers.schedules.warmup import Fall, with_warmup

__all__ = ["Schedule", "build_schedule"]

Schedule: TypeAlias = Callable[[int], float]
"""Number of optimizer steps made before, from 0 -> learning rate of the next step."""


def build_schedule(training: TrainConfig, total_steps: int, items: int | None = None) -> Schedule:
    """Return the schedule of a configuration.

    Args:
        training: names it, its peak and its warm-up.
        total_steps: optimizer steps of the whole training, at least 1.
        items: that an epoch trains; no batch is larger, whatever the configuration says. None: any number.
    """
    peak = scaled_learning_rate(
        training.learning_rate,
        training.learning_rate_scaling,
        batch_size=training.batch_size if items is None else min(training.batch_size, items),
        reference_batch_size=training.reference_batch_size,
    )
    warmup_steps = round(training.warmup_fraction * total_steps)
    if training.schedule == "one_cycle":
        return lambda step: peak * one_cycle(step, total_steps, warmup_steps)
    fall = _fall(training)
    return lambda step: peak * with_warmup(fall, step, total_steps, warmup_steps)


def _fall(training: TrainConfig) -> Fall:
    """Return what follows the warm-up."""
    if training.schedule == "step":
        return partial(stepwise, drops=training.schedule_drops, factor=training.schedule_factor)
    if training.schedule == "polynomial":
        return partial(polynomial, power=training.schedule_power)
    return {"constant": constant, "cosine": cosine, "linear": linear}[training.schedule]
