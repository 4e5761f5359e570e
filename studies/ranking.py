"""Which trials of a study are the best; a pure function of a snapshot."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from studies.trial import Trial, TrialState

__all__ = ["Replicated", "best_of", "best_on_average"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicated:
    """A configuration that was trained several times.

    Attributes:
        trials: its complete trainings, the best first.
        mean: of their values.
    """

    trials: tuple[Trial, ...]
    mean: float


def best_of(trials: Iterable[Trial], direction: str, k: int) -> tuple[Trial, ...]:
    """The `k` best COMPLETE trials with a finite value, best first; of equal ones the older first.

    A pruned trial is never among them: the value that Optuna stores for it is that of an unfinished training. Neither
    is an imported one: it was measured elsewhere, and there is no checkpoint of it here.

    Raises:
        ValueError: `k` is less than 1.
    """
    if k < 1:
        raise ValueError(f"k={k} is not a number of trials; give 1 or more")
    sign = -1.0 if direction == "maximize" else 1.0
    ranked = sorted(
        (sign * trial.value, trial.number, trial)
        for trial in trials
        if trial.state is TrialState.COMPLETE
        and not trial.is_imported
        and trial.value is not None
        and math.isfinite(trial.value)
    )
    return tuple(trial for _, _, trial in ranked[:k])


def best_on_average(trials: Iterable[Trial], direction: str) -> Replicated | None:
    """The best by the mean of those configurations that were trained to the end more than once; None: none was.

    A single best value was in part luck, the more trials it was the best of.
    """
    ranked = best_of(trials := list(trials), direction, max(1, len(trials)))
    by_configuration: dict[tuple[tuple[str, object], ...], list[Trial]] = {}
    for trial in ranked:
        by_configuration.setdefault(tuple(sorted(trial.configuration.items())), []).append(trial)
    several = [
        Replicated(trials=tuple(group), mean=fmean(trial.value for trial in group if trial.value is not None))
        for group in by_configuration.values()
        if len(group) > 1
    ]
    sign = -1.0 if direction == "maximize" else 1.0
    return min(several, key=lambda one: sign * one.mean, default=None)
