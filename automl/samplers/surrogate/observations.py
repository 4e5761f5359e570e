"""What was observed of trials, and after how much training: where some rest or were stopped early, that differs.

A trial gives what it reported last, and what it reported where others have ended before, so that a model learns what
short trainings tell of full ones: a training's length is one more input of its kernel, which is asked for full ones
(Kandasamy et al. 2017, "Multi-fidelity Bayesian Optimisation with Continuous Approximations", arXiv 1703.06240).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from automl.samplers.surrogate.records import Lesson, Records

__all__ = ["Observations", "observations"]


@dataclass(frozen=True, slots=True)
class Observations:
    """Losses: one for each trial, and then more for those that were trained farther than others.

    Attributes:
        trials: places of the trials in the records; those that cannot be trained are among them.
        losses: what was observed; infinite for what cannot be trained.
        is_bad: what cannot be trained.
        fidelity: after how much training, from 0, the shortest, to 1, the longest, on a scale of logarithms; 1 for all
            where there is no difference, and for what cannot be trained.
    """

    trials: NDArray[np.intp]
    losses: NDArray[np.float64]
    is_bad: NDArray[np.bool_]
    fidelity: NDArray[np.float64]

    @property
    def differ(self) -> bool:
        """Whether some were trained less than others."""
        return bool((self.fidelity < 1.0).any())


def observations(records: Records, trials: NDArray[np.intp]) -> Observations:
    """What was observed of some trials: of each what it reported last, in their order, and then what they did before.

    Args:
        records: of the study.
        trials: places of results and of what cannot be trained.
    """
    losses, epochs = records.losses[trials], records.epochs[trials]
    is_bad = records.lessons[trials] == Lesson.BAD
    ends = np.unique(epochs[~is_bad & (epochs > 0)])
    if len(ends) < 2:
        return Observations(trials, losses, is_bad, np.ones(len(trials)))
    more, more_ends, more_losses = [], [], []
    for at, epoch in zip(trials[~is_bad].tolist(), epochs[~is_bad].tolist(), strict=True):
        if (before := _before(records, at, ends[ends < epoch])) is not None:
            more.append(at)
            more_ends.append(before[0])
            more_losses.append(before[1])
    epochs = np.concatenate([np.where(is_bad | (epochs == 0), ends[-1], epochs), more_ends])
    return Observations(
        trials=np.concatenate([trials, np.array(more, dtype=np.intp)]),
        losses=np.concatenate([losses, more_losses]),
        is_bad=np.concatenate([is_bad, [False] * len(more)]),
        fidelity=np.log(epochs / ends[0]) / np.log(ends[-1] / ends[0]),
    )


def _before(records: Records, at: int, ends: NDArray[np.int64]) -> tuple[int, float] | None:
    """The last of the epochs at which a trial reported a finite loss, and that; None: it did at none."""
    for end in reversed(ends.tolist()):
        loss = records.loss_at(at, end)
        if np.isfinite(loss):
            return end, loss
    return None
