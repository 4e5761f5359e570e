"""Whether a metric has a value on given splits: it is asked before anything is trained. Loads no torch."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from trainers.errors import BadDataError
from trainers.metrics.names import RANKED

__all__ = ["check_class_metric", "check_number_metric"]

_MOST_SHOWN = 10


def check_class_metric(
    metric: str, labels: Mapping[str, npt.NDArray[np.int64]], class_names: Sequence[str], source: str
) -> None:
    """Refuse a metric that needs two classes where a split holds one.

    Args:
        metric: the objective.
        labels: split -> class of each item.
        class_names: in the order of the labels.
        source: the data, for the message.

    Raises:
        BadDataError: with the counts of the classes in every such split.
    """
    if metric not in RANKED:
        return
    counts = {split: np.bincount(labels_N, minlength=len(class_names)) for split, labels_N in labels.items()}
    problems = [
        f"the {split} split has {_in_words(counts_K, class_names)}"
        for split, counts_K in counts.items()
        if np.count_nonzero(counts_K) < 2
    ]
    if problems:
        raise BadDataError(
            f"{metric} of {source!r} is not defined: {'; '.join(problems)}; it needs at least two classes in each "
            "split: add items, or choose another metric, such as accuracy"
        )


def check_number_metric(metric: str, targets: Mapping[str, npt.NDArray[np.float64]], source: str) -> None:
    """Refuse R2 where the targets of a split are all equal: there is nothing to explain.

    Args:
        metric: the objective.
        targets: split -> target of each item.
        source: the data, for the message.

    Raises:
        BadDataError: it names every such split and its one value.
    """
    if metric != "r2":
        return
    problems = [
        f"all {len(targets_N)} targets of the {split} split are {targets_N[0]:g}"
        for split, targets_N in targets.items()
        if len(targets_N) and targets_N.min() == targets_N.max()
    ]
    if problems:
        raise BadDataError(
            f"r2 of {source!r} is not defined: {'; '.join(problems)}; add items, or choose another metric, such as rmse"
        )


def _in_words(counts_K: npt.NDArray[np.int64], class_names: Sequence[str]) -> str:
    counts = [f"{count} of {name!r}" for name, count in zip(class_names, counts_K.tolist(), strict=True)]
    more = [f"{len(counts) - _MOST_SHOWN} more classes"] if len(counts) > _MOST_SHOWN else []
    return ", ".join(counts[:_MOST_SHOWN] + more)
