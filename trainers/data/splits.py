"""Cuts items into train, validation and test, every class in its own proportion."""

import logging
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from trainers.errors import BadDataError
from trainers.seeds import Purpose, random_generator

__all__ = ["stratified_split"]

_log = logging.getLogger(__name__)


def stratified_split(
    labels: npt.NDArray[np.int64],
    fractions: Sequence[float],
    seed: int,
    class_names: Sequence[str],
    small_classes: Literal["refuse", "train"] = "refuse",
) -> tuple[npt.NDArray[np.int64], ...]:
    """Return the indices of the parts that are cut off, and last those of the rest (the training items).

    A class's items are shuffled with a generator of their own, so that adding a class leaves the others'
    parts alone. Each class gives every part its fraction, rounded, and at least one item.

    Args:
        labels: (N,) class of each item, in [0, number of classes).
        fractions: share of all items for each part that is cut off, each in (0, 1), below 1 together.
        seed: the split is a pure function of this and the labels.
        class_names: for messages.
        small_classes: what becomes of a class with fewer items than parts; `train`: all are training items, which a
            warning says.

    Returns:
        Sorted index arrays: one per fraction, then the rest.

    Raises:
        BadDataError: classes have too few items to be in every part; the message names all of them.
    """
    counts = np.bincount(labels, minlength=len(class_names))
    needed = len(fractions) + 1
    if small_classes == "refuse" or counts.max(initial=0) < needed:
        _refuse_small_classes(counts, needed, class_names)
    parts: list[list[npt.NDArray[np.int64]]] = [[] for _ in range(len(fractions) + 1)]
    for label, count in enumerate(counts):
        shuffled = random_generator(Purpose.SPLIT, seed, label).permutation(np.flatnonzero(labels == label))
        bounds = _bounds(int(count), fractions) if count >= needed else [0] * needed + [int(count)]
        for part, (start, stop) in zip(parts, pairwise(bounds), strict=True):
            part.append(shuffled[start:stop])
    if small := [f"{name!r} ({count})" for name, count in zip(class_names, counts, strict=True) if 0 < count < needed]:
        _log.warning("classes with fewer than %d items are in the training split alone: %s", needed, ", ".join(small))
    return tuple(np.sort(np.concatenate(part)) for part in parts)


def _bounds(items: int, fractions: Sequence[float]) -> list[int]:
    """Return where the parts of a class begin and end; rounding cumulated fractions keeps the total true."""
    bounds, share = [0], 0.0
    for left, fraction in zip(range(len(fractions), 0, -1), fractions, strict=True):
        share += fraction
        bounds.append(min(max(round(items * share), bounds[-1] + 1), items - left))
    return [*bounds, items]


def _refuse_small_classes(counts: npt.NDArray[np.int64], needed: int, class_names: Sequence[str]) -> None:
    small = [f"{name!r} has {count}" for name, count in zip(class_names, counts, strict=True) if count < needed]
    if small:
        raise BadDataError(
            f"each class needs at least {needed} items, one for each split; too few: {', '.join(small)}; "
            "add items or leave these classes out"
        )
