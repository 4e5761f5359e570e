"""The splits of a data set: cut into train, validation and test, every class in its own proportion, and recognised."""

import hashlib
import logging
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from trainers.data.spec import DataSpec, SplitName
from trainers.errors import BadDataError
from trainers.seeds import Purpose, random_generator

__all__ = ["cut_splits", "fingerprint", "present_split", "stratified_split"]

S = TypeVar("S")

_log = logging.getLogger(__name__)


def cut_splits(
    labels: npt.NDArray[np.int64],
    class_names: Sequence[str],
    spec: DataSpec,
    brought: Collection[SplitName],
    small_classes: Literal["refuse", "train"] = "refuse",
) -> dict[SplitName, npt.NDArray[np.int64]]:
    """Return split -> sorted indices of its items, for all splits that the source does not bring itself.

    Args:
        labels: (N,) class of each item.
        class_names: for messages.
        spec: says how large splits are, and whether there is one to test on.
        brought: validation and test splits that are there already.
        small_classes: see `stratified_split`.

    Raises:
        BadDataError: classes have too few items; see `stratified_split`.
    """
    wanted: dict[SplitName, float] = {"test": spec.test_fraction, "validation": spec.validation_fraction}
    fractions = {name: share for name, share in wanted.items() if share > 0.0 and name not in brought}
    parts = stratified_split(labels, list(fractions.values()), spec.split_seed, class_names, small_classes)
    return dict(zip([*fractions, "train"], parts, strict=True))


def present_split(split: S | None, name: SplitName, source: str, remedy: str) -> S:
    """Return a split that is there.

    Raises:
        BadDataError: it is not.
    """
    if split is None:
        raise BadDataError(f"{source!r} has no {name} split; {remedy}")
    return split


def fingerprint(names: object, splits: Mapping[SplitName, Sequence[npt.NDArray[Any]]]) -> str:
    """Return the SHA-256 of what tells one data set from another; it is the same on all machines.

    Args:
        names: plain values, such as the names of classes.
        splits: the arrays of each split that is there.
    """
    digest = hashlib.sha256(repr(names).encode("utf-8", "surrogatepass"))
    order: tuple[SplitName, ...] = ("train", "validation", "test")
    for name in order:
        if name not in splits:
            digest.update(b"none")
        for array in splits.get(name, ()):
            digest.update(repr(array.shape).encode())
            digest.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).data)
    return digest.hexdigest()


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
