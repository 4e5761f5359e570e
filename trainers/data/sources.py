"""Finds out what a data source is, refuses what cannot be one, and reads it."""

import difflib
from pathlib import Path

import numpy as np

from trainers.data.arrays import ImageData, ImageSplit, LabelledImages, cut_images
from trainers.data.spec import BUILT_IN_IMAGES, DataSpec
from trainers.errors import BadDataError

__all__ = ["check_image_source", "count_image_classes", "load_images"]


def check_image_source(spec: DataSpec) -> None:
    """Refuse a source that cannot be there or be of use, without reading the data.

    Raises:
        BadDataError: the message says what was given, the nearest name, and what is allowed.
    """
    if spec.source in BUILT_IN_IMAGES:
        return
    path = _existing_path(spec.source)
    if path.is_dir():
        from trainers.data.image_folders import check_image_folder

        check_image_folder(path)
    else:
        from trainers.data.npz_files import check_npz

        check_npz(path)


def count_image_classes(spec: DataSpec) -> int:
    """Count the classes of a source, without reading its images.

    Raises:
        BadDataError: the source is missing or broken.
    """
    if spec.source == "digits":
        return 10
    path = _existing_path(spec.source)
    if path.is_dir():
        from trainers.data.image_folders import count_folder_classes

        return count_folder_classes(path)
    from trainers.data.npz_files import count_npz_classes

    return count_npz_classes(path)


def load_images(spec: DataSpec) -> ImageData:
    """Read a source and cut it into train, validation and test.

    Raises:
        BadDataError: the source is missing, broken, or has too few items in a class.
    """
    return cut_images(_read(spec), spec)


def _read(spec: DataSpec) -> LabelledImages:
    if spec.source == "digits":
        return _read_digits()
    path = _existing_path(spec.source)
    if path.is_dir():
        from trainers.data.image_folders import read_image_folder

        return read_image_folder(path, spec.image_size)
    from trainers.data.npz_files import read_npz

    return read_npz(path)


def _existing_path(source: str) -> Path:
    """Return the source's path, which is a folder or an `.npz` file."""
    path = Path(source).expanduser()
    if path.is_dir() or (path.is_file() and path.suffix == ".npz"):
        return path
    if path.is_file():
        raise BadDataError(f"{source!r} is a file of an unknown kind; {_allowed()}")
    near = difflib.get_close_matches(source, BUILT_IN_IMAGES, n=1) or _near_files(path)
    hint = f"; did you mean {near[0]!r}?" if near else ";"
    raise BadDataError(f"no data set {source!r}{hint} {_allowed()}")


def _near_files(path: Path) -> list[str]:
    """Return the entry beside a missing path whose name is nearest to it."""
    if not path.name or not path.parent.is_dir():
        return []
    names = [entry.name for entry in path.parent.iterdir() if entry.is_dir() or entry.suffix == ".npz"]
    return [str(path.parent / name) for name in difflib.get_close_matches(path.name, names, n=1)]


def _allowed() -> str:
    return f"allowed: {', '.join(BUILT_IN_IMAGES)}, an .npz file, or a folder with one sub-folder of images per class"


def _read_digits() -> LabelledImages:
    """Return the 1,797 handwritten digits of scikit-learn; their 17 grey levels are spread over 0 to 255.

    Source: Alpaydin and Kaynak 1998, UCI Optical Recognition of Handwritten Digits, test part.
    """
    from sklearn.datasets import load_digits  # 0.9 s to import, so only for who uses it

    bunch = load_digits()
    images_NCHW = np.round(bunch.images[:, np.newaxis] * (255.0 / 16.0)).astype(np.uint8)
    return LabelledImages(
        train=ImageSplit(images_NCHW=images_NCHW, labels_N=bunch.target.astype(np.int64)),
        class_names=tuple(str(name) for name in bunch.target_names),
    )
