"""Reads a folder with one sub-folder of pictures per class, decoded to arrays of one size."""

import logging
import os
import struct
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from trainers.data.arrays import ImageSplit, LabelledImages
from trainers.data.pixels import decode_picture, images_to_NCHW
from trainers.errors import BadDataError

__all__ = ["check_image_folder", "count_folder_classes", "read_image_folder"]

logger = logging.getLogger(__name__)

_SPLIT_FOLDERS = {
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "test": "test",
}
_BROKEN_PICTURE = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    EOFError,
    struct.error,
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,
)
_NAMED_FILES = 20  # how many broken files a message names


def check_image_folder(root: Path) -> None:
    """Refuse a folder that has not at least two class folders, without opening a picture.

    Raises:
        BadDataError: it has fewer, or several folders for one split; the message says what was found.
    """
    for folder in _split_folders(root).values():
        _class_folders(folder)


def count_folder_classes(root: Path) -> int:
    """Count the class folders of the training items.

    Raises:
        BadDataError: see `check_image_folder`.
    """
    return len(_class_folders(_split_folders(root)["train"]))


def read_image_folder(root: Path, image_size: int | None) -> LabelledImages:
    """Read `root/<class>/**` or, when the folder brings its splits, `root/{train,val,test}/<class>/**`.

    Classes are the sub-folders, sorted by name. Hidden files and files whose ending names no picture format
    are left out and counted in a warning. If any picture has colour, all become RGB; otherwise all have one channel.

    Args:
        root: the folder.
        image_size: height and width to scale to, in pixels; None: the size of the first picture.

    Raises:
        BadDataError: a class has no picture, a split has several folders, splits have different classes, or files
            are broken (all are named).
    """
    folders = _split_folders(root)
    classes = {split: _class_folders(folder) for split, folder in folders.items()}
    names = [folder.name for folder in classes["train"]]
    _check_same_classes(names, classes, root)
    files = {split: [_pictures(folder) for folder in class_folders] for split, class_folders in classes.items()}
    paths = [path for groups in files.values() for group in groups for path in group]
    images_NCHW = _decode_all(paths, image_size)
    splits, start = {}, 0
    for split, groups in files.items():
        labels = np.repeat(np.arange(len(groups), dtype=np.int64), [len(group) for group in groups])
        splits[split] = ImageSplit(images_NCHW=images_NCHW[start : start + len(labels)], labels_N=labels)
        start += len(labels)
    return LabelledImages(
        train=splits["train"],
        validation=splits.get("validation"),
        test=splits.get("test"),
        class_names=tuple(names),
    )


def _split_folders(root: Path) -> dict[str, Path]:
    """Return split -> folder with its class folders; a folder without splits is all `train`.

    Raises:
        BadDataError: two folders are for one split; all of them are named.
    """
    children = [path for path in _sorted_entries(root) if path.is_dir()]
    if any(path.name == "train" for path in children) and all(path.name in _SPLIT_FOLDERS for path in children):
        _check_one_folder_per_split(children, root)
        return {_SPLIT_FOLDERS[path.name]: path for path in children}
    return {"train": root}


def _check_one_folder_per_split(children: Sequence[Path], root: Path) -> None:
    names: dict[str, list[str]] = {}
    for path in children:
        names.setdefault(_SPLIT_FOLDERS[path.name], []).append(path.name)
    double = [f"{' and '.join(found)} are all {split}" for split, found in names.items() if len(found) > 1]
    if double:
        raise BadDataError(f"{root} has several folders for one split: {'; '.join(double)}; keep one folder per split")


def _class_folders(folder: Path) -> list[Path]:
    folders = [path for path in _sorted_entries(folder) if path.is_dir()]
    if len(folders) < 2:
        raise BadDataError(
            f"{folder} has {len(folders)} sub-folders; needed: one per class with its pictures, two at least"
        )
    return folders


def _sorted_entries(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise BadDataError(f"{folder} cannot be listed: {error}") from error


def _check_same_classes(names: Sequence[str], classes: Mapping[str, list[Path]], root: Path) -> None:
    for split, folders in classes.items():
        own = [folder.name for folder in folders]
        if own != list(names):
            differing = sorted(set(own) ^ set(names))
            raise BadDataError(f"{root}: {split} and train have different classes: {', '.join(differing)}")


def _pictures(folder: Path) -> list[Path]:
    """Return the picture files below a class folder, sorted.

    Raises:
        BadDataError: there is none.
    """
    known = Image.registered_extensions()
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    pictures = [path for path in files if path.suffix.lower() in known]
    if len(pictures) < len(files):
        logger.warning("files left out folder=%s count=%d reason=no picture format", folder, len(files) - len(pictures))
    if not pictures:
        raise BadDataError(f"{folder} holds no picture; remove the folder or fill it")
    return pictures


def _decode_all(paths: Sequence[Path], image_size: int | None) -> npt.NDArray[np.uint8]:
    """Decode the files to one (N, C, H, W) array; decoding releases Python's lock, so threads help."""
    size = (image_size, image_size) if image_size is not None else _first_size(paths)
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as threads:
            decoded = list(threads.map(lambda path: _decode_or_reason(path, size), paths))
    broken = [outcome for outcome in decoded if isinstance(outcome, str)]
    if broken:
        _refuse_broken(broken, len(paths))
    return _stacked(outcome for outcome in decoded if not isinstance(outcome, str))


def _first_size(paths: Sequence[Path]) -> tuple[int, int] | None:
    """Return (height, width) of the first picture that can be decoded; None when none can."""
    for path in paths:
        outcome = _decode_or_reason(path, None)
        if not isinstance(outcome, str):
            return outcome.shape[0], outcome.shape[1]
    return None


def _decode_or_reason(path: Path, size: tuple[int, int] | None) -> npt.NDArray[np.uint8] | str:
    try:
        return decode_picture(path, size)
    except _BROKEN_PICTURE as error:
        return f"{path} ({error})"


def _refuse_broken(broken: Sequence[str], files: int) -> None:
    more = f"; and {len(broken) - _NAMED_FILES} more" if len(broken) > _NAMED_FILES else ""
    raise BadDataError(
        f"{len(broken)} of {files} pictures cannot be decoded; remove or repair them: "
        f"{'; '.join(broken[:_NAMED_FILES])}{more}"
    )


def _stacked(pictures: Iterable[npt.NDArray[np.uint8]]) -> npt.NDArray[np.uint8]:
    images = list(pictures)
    if any(image.ndim == 3 for image in images):
        images = [image if image.ndim == 3 else np.repeat(image[:, :, np.newaxis], 3, axis=2) for image in images]
    return images_to_NCHW(np.stack(images), "the pictures")
