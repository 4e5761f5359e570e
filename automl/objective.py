"""Better and worse, in one place: direction, ties and what a trial counts for that has no value of its own."""

import math
from collections.abc import Iterable

from studies.trial import Trial, TrialState
from trainers.config import Direction

__all__ = ["is_finite", "is_infeasible", "is_out_of_memory", "loss_of", "losses_at", "observed_value", "to_loss"]


def to_loss(value: float, direction: Direction) -> float:
    """Turn an objective into a loss, so that smaller is better; NaN is worse than everything."""
    loss = -value if direction == "maximize" else value
    return math.inf if math.isnan(loss) else loss


def is_finite(value: float) -> bool:
    """Whether a reported objective can be kept; a trial that reports any other has failed."""
    return math.isfinite(value)


def observed_value(trial: Trial) -> float | None:
    """What a sampler may learn from: the value of a COMPLETE trial, the last report of a PRUNED or PAUSED one."""
    if trial.state is TrialState.COMPLETE:
        return trial.value
    if trial.state in (TrialState.PRUNED, TrialState.PAUSED) and trial.reports:
        return trial.reports[trial.last_epoch]
    return None


def loss_of(trial: Trial, direction: Direction) -> float:
    """The loss of what was observed; infinite for a trial that runs, failed, was refused or never reported."""
    value = observed_value(trial)
    return math.inf if value is None else to_loss(value, direction)


def losses_at(epochs: Iterable[int], trial: Trial, direction: Direction) -> dict[int, float]:
    """Epoch -> the loss that a trial has reported there, for those of the epochs that it has reported."""
    return {epoch: to_loss(trial.reports[epoch], direction) for epoch in epochs if epoch in trial.reports}


def is_out_of_memory(trial: Trial) -> bool:
    """Whether a trial has failed because it needs more memory than there is."""
    return trial.state is TrialState.FAILED and trial.cause == "oom"


def is_infeasible(trial: Trial) -> bool:
    """Whether a configuration is known to be impossible to train: it was refused, or needs too much memory."""
    return trial.state is TrialState.INFEASIBLE or is_out_of_memory(trial)
