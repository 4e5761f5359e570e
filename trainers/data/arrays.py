"""Images in memory: numpy arrays per split, which processes can share without copies; no torch."""

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainers.data.spec import DataSpec, SplitName
from trainers.data.splits import cut_splits, present_split
from trainers.errors import BadDataError

__all__ = ["ImageData", "ImageSplit", "LabelledImages", "cut_images"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSplit:
    """The items of one split, in the order of the source.

    Attributes:
        images_NCHW: (N, channels, height, width) uint8; may be read-only.
        labels_N: (N,) int64 class of each image; may be read-only.
    """

    images_NCHW: npt.NDArray[np.uint8]
    labels_N: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels_N)

    def at(self, indices: npt.NDArray[np.int64]) -> "ImageSplit":
        """Return a copy of some items."""
        return ImageSplit(images_NCHW=self.images_NCHW[indices], labels_N=self.labels_N[indices])


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledImages:
    """What a source holds, with the splits it brings itself.

    Attributes:
        train: the items to train on, or all items when the source brings no split.
        validation: the source's own validation split, or None.
        test: the source's own test split, or None.
        class_names: name of each class, in the order of the labels.
    """

    train: ImageSplit
    validation: ImageSplit | None = None
    test: ImageSplit | None = None
    class_names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageData:
    """A data set that is ready to train on; picklable, and shared by trials and ranks.

    Attributes:
        source: where it came from, for messages.
        train: what a network learns from.
        validation: what chooses the best trial.
        test: what only a finished search sees; None when the specification leaves it out.
        class_names: name of each class, in the order of the labels.
        mean: mean of each channel over the training split, pixels in [0, 1].
        std: standard deviation of each channel over the training split; 1 for a constant channel.
        fingerprint: SHA-256 over all splits; equal on two machines only if their data and splits are.
    """

    source: str
    train: ImageSplit
    validation: ImageSplit
    test: ImageSplit | None
    class_names: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    fingerprint: str

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """(channels, height, width) of every image."""
        channels, height, width = self.train.images_NCHW.shape[1:]
        return channels, height, width

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def num_outputs(self) -> int:
        """Number of logits that a network answers with."""
        return self.num_classes

    def split(self, name: SplitName) -> ImageSplit:
        """Return one split.

        Raises:
            BadDataError: there is no test split.
        """
        split = {"train": self.train, "validation": self.validation, "test": self.test}[name]
        return present_split(split, name, self.source, "set test_fraction above 0")


def cut_images(images: LabelledImages, spec: DataSpec) -> ImageData:
    """Cut the splits that a source does not bring itself, and measure the training pixels.

    Raises:
        BadDataError: fewer than two classes, or a class too small to be in every split.
    """
    names = images.class_names
    if len(names) < 2:
        raise BadDataError(f"{spec.source!r} has {len(names)} class; a classifier needs at least two")
    splits = _splits(images, spec)
    train, validation, test = splits["train"], splits["validation"], splits.get("test")
    mean, std = _channel_statistics(train.images_NCHW)
    return ImageData(
        source=spec.source,
        train=train,
        validation=validation,
        test=test,
        class_names=names,
        mean=mean,
        std=std,
        fingerprint=_fingerprint(train, validation, test),
    )


def _splits(images: LabelledImages, spec: DataSpec) -> dict[SplitName, ImageSplit]:
    own: dict[SplitName, ImageSplit | None] = {"validation": images.validation, "test": images.test}
    brought = {name: split for name, split in own.items() if split is not None}
    cut = cut_splits(images.train.labels_N, images.class_names, spec, brought)
    if len(cut) == 1:  # nothing is cut, and so nothing is copied
        return {"train": images.train, **brought}
    return {**{name: images.train.at(indices) for name, indices in cut.items()}, **brought}


def _channel_statistics(images_NCHW: npt.NDArray[np.uint8]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation per channel, exactly, from counts of the 256 values."""
    levels = np.arange(256) / 255.0
    mean, std = [], []
    for channel in range(images_NCHW.shape[1]):
        shares = np.bincount(images_NCHW[:, channel].reshape(-1), minlength=256) / images_NCHW[:, channel].size
        mean.append(float(shares @ levels))
        std.append(float(np.sqrt(shares @ (levels - mean[-1]) ** 2)) or 1.0)
    return tuple(mean), tuple(std)


def _fingerprint(*splits: ImageSplit | None) -> str:
    digest = hashlib.sha256()
    for split in splits:
        if split is None:
            digest.update(b"none")
            continue
        digest.update(repr(split.images_NCHW.shape).encode())
        digest.update(np.ascontiguousarray(split.images_NCHW).data)
        digest.update(np.ascontiguousarray(split.labels_N, dtype="<i8").data)
    return digest.hexdigest()
