"""What many runs say: means with their uncertainty, paired differences, shares of what random search leaves."""

from collections.abc import Mapping, Sequence

import numpy as np

from automl.simulation.statistics import Interval, mean_interval

__all__ = ["Interval", "holm", "mean_interval", "paired_interval", "suite_score"]


def paired_interval(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Interval:
    """The mean difference over the seeds that both have."""
    return mean_interval([ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())])


def suite_score(ours: Mapping[str, float], random: Mapping[str, float]) -> float:
    """The mean regret as a share of random search's, averaged over the tasks; 1 is as good as random, 0 is perfect."""
    return float(np.mean([ours[task] / random[task] for task in ours]))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values of several tests, corrected for there being several (Holm 1979)."""
    order = np.argsort(p_values)
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        corrected[at] = largest
    return corrected
