"""Reads labelled images from an `.npz` file, under the names that such files commonly use."""

import io
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trainers.data.arrays import ImageSplit, LabelledImages
from trainers.data.pixels import arrays_to_bytes, decode_picture, images_to_NCHW
from trainers.errors import BadDataError

__all__ = ["check_npz", "count_npz_classes", "read_npz"]

NAMES = (
    "x and y (or images and labels); with a test split of its own x_train, y_train, x_test, y_test "
    "(or train_images, train_labels, test_images, test_labels), optionally x_val, y_val; "
    "jpeg_train and len_train may stand for x_train; optionally classes"
)

_LARGEST_LABEL = 2.0**53
"""Larger whole numbers are not told apart when they are written as floating-point numbers."""

_SPLIT_WORDS: Mapping[str, tuple[str, ...]] = {
    "train": ("train",),
    "validation": ("validation", "valid", "val"),
    "test": ("test",),
}


def check_npz(path: Path) -> None:
    """Refuse a file that cannot hold labelled images, from its table of contents alone.

    Raises:
        BadDataError: it is no `.npz` file, or has not the arrays that are needed.
    """
    _layout(_member_names(path), path)


def count_npz_classes(path: Path) -> int:
    """Count the classes; of the arrays only the labels of the training items and the names of classes are read.

    Raises:
        BadDataError: see `read_npz`.
    """
    _, name = _layout(_member_names(path), path)["train"]
    with _readable(path) as archive:
        _, names = _number_labels({"train": _labels(archive[name], name)}, _class_names(archive), path)
    return len(names)


def read_npz(path: Path) -> LabelledImages:
    """Read all splits of a file; pickled objects are refused.

    Images: see `arrays_to_bytes` and `images_to_NCHW`; encoded pictures are one byte array `jpeg_<split>`
        with the
    length of each in `len_<split>`. Labels: (N,) or (N, 1), whole numbers or texts. `classes` names the classes: a
    label is the place of its name, from 0, or the name itself. Without it the classes are the distinct labels of the
    training items, sorted.

    Raises:
        BadDataError: an array is missing or of a wrong kind; splits disagree; labels are unknown.
    """
    layout = _layout(_member_names(path), path)
    with _readable(path) as archive:
        images = {split: _images(archive, names) for split, (names, _) in layout.items()}
        raw_labels = {split: _labels(archive[name], name) for split, (_, name) in layout.items()}
        classes = _class_names(archive)
    labels, class_names = _number_labels(raw_labels, classes, path)
    _check_agreement(images, labels, path)
    splits = {name: ImageSplit(images_NCHW=images[name], labels_N=labels[name]) for name in layout}
    return LabelledImages(
        train=splits["train"],
        validation=splits.get("validation"),
        test=splits.get("test"),
        class_names=class_names,
    )


def _member_names(path: Path) -> frozenset[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return frozenset(name.removesuffix(".npy") for name in archive.namelist())
    except (OSError, zipfile.BadZipFile) as error:
        raise BadDataError(f"{path} is no .npz file: {error}") from error


@contextmanager
def _readable(path: Path) -> Iterator[Mapping[str, npt.NDArray[Any]]]:
    """Open a file's arrays, and say in our words why they cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            yield archive
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        if isinstance(error, BadDataError):
            raise
        raise BadDataError(f"{path} cannot be read: {error}") from error


def _layout(names: Collection[str], path: Path) -> dict[str, tuple[tuple[str, ...], str]]:
    """Return split -> (names of the arrays with its images, name of its labels); `train` is always there."""
    layout: dict[str, tuple[tuple[str, ...], str]] = {}
    for split, words in _SPLIT_WORDS.items():
        candidates = [
            option
            for word in words
            for option in (
                ((f"x_{word}",), f"y_{word}"),
                ((f"{word}_images",), f"{word}_labels"),
                ((f"jpeg_{word}", f"len_{word}"), f"y_{word}"),
            )
        ]
        if split == "train":
            candidates += [(("x",), "y"), (("images",), "labels")]
        found = [option for option in candidates if {*option[0], option[1]} <= set(names)]
        if found:
            layout[split] = found[0]
    if "train" not in layout:
        raise BadDataError(f"{path} holds {', '.join(sorted(names)) or 'nothing'}; needed: {NAMES}")
    return layout


def _images(archive: Mapping[str, npt.NDArray[Any]], names: tuple[str, ...]) -> npt.NDArray[np.uint8]:
    if len(names) == 1:
        return images_to_NCHW(arrays_to_bytes(archive[names[0]], names[0]), names[0])
    encoded, lengths = archive[names[0]], archive[names[1]]
    if encoded.dtype != np.uint8 or int(lengths.sum()) != encoded.size or (lengths < 1).any():
        raise BadDataError(f"{names[0]} must be uint8 with as many bytes as {names[1]} adds up to")
    ends = np.cumsum(lengths, dtype=np.int64)
    pictures = [
        decode_picture(io.BytesIO(encoded[end - length : end].tobytes()), None)
        for end, length in zip(ends, lengths, strict=True)
    ]
    shapes = {picture.shape for picture in pictures}
    if len(shapes) != 1:
        raise BadDataError(f"the pictures of {names[0]} have {len(shapes)} different shapes; they must have one")
    return images_to_NCHW(np.stack(pictures), names[0])


def _labels(labels: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    labels = _decoded(labels, name)
    if labels.dtype.kind == "f" and labels.ndim == 1:
        labels = _whole(labels, name)
    if labels.ndim != 1 or labels.dtype.kind not in "iubU":
        raise BadDataError(
            f"{name} has type {labels.dtype} and shape {labels.shape}; needed: a whole number or text per image"
        )
    return labels


def _whole(labels: npt.NDArray[Any], name: str) -> npt.NDArray[np.int64]:
    """Turn labels that were written as floating-point numbers into the whole numbers that they are."""
    wrong = np.flatnonzero((labels != np.round(labels)) | ~(np.abs(labels) <= _LARGEST_LABEL))  # NaN is in both
    if len(wrong):
        told = ", ".join(f"{labels[item]:g} (image {item})" for item in wrong[:5])
        more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise BadDataError(f"{name} has labels that are no whole numbers: {told}{more}; repair them, or leave them out")
    return labels.astype(np.int64)


def _class_names(archive: Mapping[str, npt.NDArray[Any]]) -> tuple[str, ...] | None:
    for name in ("classes", "class_names"):
        if name in archive:
            return tuple(str(value) for value in _decoded(archive[name], name).reshape(-1).tolist())
    return None


def _decoded(array: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Return texts as texts: an array of bytes is read as UTF-8."""
    if array.dtype.kind != "S":
        return array
    try:
        return np.char.decode(array, "utf-8")
    except UnicodeDecodeError as error:
        raise BadDataError(f"{name} holds bytes that are no UTF-8 text: {error.reason}; write texts") from error


def _number_labels(
    raw: Mapping[str, npt.NDArray[Any]], classes: tuple[str, ...] | None, path: Path
) -> tuple[dict[str, npt.NDArray[np.int64]], tuple[str, ...]]:
    """Return the labels as class numbers, and the names of the classes.

    Labels that are numbers are places in `classes`; those that are texts are names in it.
    """
    if classes is None:
        known: npt.NDArray[Any] = np.unique(raw["train"])
        names = tuple(str(value) for value in known.tolist())
    else:
        names = _distinct(classes, path)
        known = np.arange(len(names)) if raw["train"].dtype.kind in "iub" else np.array(names)
    strange = {split: sorted(set(labels.tolist()) - set(known.tolist()), key=str) for split, labels in raw.items()}
    mistakes = [f"{values[:5]} in {split}" for split, values in strange.items() if values]
    if mistakes:
        listed = ", ".join(map(repr, names[:5])) + (", .." if len(names) > 5 else "")
        raise BadDataError(
            f"{path} has labels outside its {len(names)} classes: {'; '.join(mistakes)}; it has {listed}"
        )
    order = np.argsort(known)
    return {split: order[np.searchsorted(known, labels, sorter=order)] for split, labels in raw.items()}, names


def _distinct(classes: tuple[str, ...], path: Path) -> tuple[str, ...]:
    twins = sorted({name for name in classes if classes.count(name) > 1})
    if twins:
        raise BadDataError(
            f"{path} names classes twice: {', '.join(map(repr, twins[:5]))}; give each a name of its own"
        )
    return classes


def _check_agreement(
    images: Mapping[str, npt.NDArray[np.uint8]], labels: Mapping[str, npt.NDArray[np.int64]], path: Path
) -> None:
    mistakes = [
        f"{split} has {len(images[split])} images and {len(labels[split])} labels"
        for split in images
        if len(images[split]) != len(labels[split])
    ]
    shape = images["train"].shape[1:]
    mistakes += [
        f"images of {split} are {other.shape[1:]} and of train {shape} (channels, height, width)"
        for split, other in images.items()
        if other.shape[1:] != shape
    ]
    if mistakes:
        raise BadDataError(f"{path}: {'; '.join(mistakes)}")
