"""Training the best again: where results are noisy, the best of many was in part lucky, and a mean is not.

The winner's curse grows with the number of trials; what is spent on replicates of a few is not spent on it.
"""

from collections import Counter
from collections.abc import Sequence

from automl.objective import loss_of, observed_value
from search_spaces.configuration import Configuration
from studies.trial import Trial, TrialState
from trainers.config import Direction

__all__ = ["least_repeated"]

_COUNTS = (TrialState.RUNNING, TrialState.PAUSED, TrialState.PRUNED, TrialState.COMPLETE)


def least_repeated(trials: Sequence[Trial], direction: Direction, *, since: int, best: int) -> Configuration | None:
    """The one of the best configurations that was trained again the fewest times; of equal ones the best.

    Args:
        trials: the study in order of the numbers.
        direction: whether larger or smaller objectives are better.
        since: the number of the trial from which on the best are trained again.
        best: how many configurations take part.

    Returns:
        One of those that were tried before `since`; None: none has a result.
    """
    earlier = [trial for trial in trials if trial.number < since and observed_value(trial) is not None]
    ranked = sorted(earlier, key=lambda trial: (loss_of(trial, direction), trial.number))
    chosen = list(dict.fromkeys(Configuration(trial.configuration) for trial in ranked))[:best]
    again = Counter(
        Configuration(trial.configuration) for trial in trials if trial.number >= since and trial.state in _COUNTS
    )
    return min(chosen, key=lambda configuration: again[configuration], default=None)
