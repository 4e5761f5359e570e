"""Which trials of a study are the best; a pure function of a snapshot."""

import math
from collections.abc import Iterable

from studies.trial import Trial, TrialState

__all__ = ["best_of"]


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
