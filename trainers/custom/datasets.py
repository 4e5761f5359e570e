"""The datasets that a person's file makes, and what a network is told about their items."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
from torch.utils.data import TensorDataset

from trainers.custom.files import Carried, OwnFile
from trainers.custom.sources import source_fingerprint
from trainers.data.spec import SplitName
from trainers.errors import BadDataError, UserCodeError
from trainers.feeding.generators import kept_generators, seed_generators
from trainers.feeding.items import Collation, read_item
from trainers.feeding.targets import TargetCheck

__all__ = ["OwnDatasets", "TargetKind", "make_datasets", "target_check"]

TargetKind: TypeAlias = Literal["classes", "numbers", "other"]
"""What a target is: a whole number that names a class, a number, or something that only an own loss understands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnDatasets:
    """Training, validation and test items of a person's own.

    Attributes:
        file: path of the file that has made them.
        source: what they were made of.
        splits: name -> dataset; a test split may be missing.
        kind: of the targets.
        input_shape: of one item's input, without the dimension of the items; of several inputs a tuple of shapes.
        num_outputs: classes, or numbers to tell.
        fingerprint: of the source and the sizes of the splits.
    """

    file: str
    source: str
    splits: Carried
    kind: TargetKind
    input_shape: Any
    num_outputs: int
    fingerprint: str

    def split(self, name: SplitName) -> Any:
        """Return the items of a split.

        Raises:
            BadDataError: there is no such split.
        """
        if name not in self.splits.value:
            raise BadDataError(
                f"{Path(self.file).name} has no {name} items; let datasets(source) return three datasets"
            )
        return self.splits.value[name]


def make_datasets(file: OwnFile, source: str) -> OwnDatasets:
    """Call the file's `datasets`, and look at what it returns.

    Raises:
        UserCodeError: it returns something else than datasets, or their items are no (input, target).
        BadDataError: a split is empty, or has targets that are not allowed.
    """
    found = file.module.datasets(source)
    names: tuple[SplitName, ...] = ("train", "validation", "test")
    if not isinstance(found, tuple | list) or len(found) not in (2, 3):
        raise UserCodeError(
            f"{file.path.name}: datasets({source!r}) returned {type(found).__name__}; needed: two or three "
            "datasets: training, validation and perhaps test items"
        )
    splits = {name: part for name, part in zip(names, found, strict=False) if part is not None}
    for name, dataset in splits.items():
        _check_split(name, dataset, file)
    inputs, targets = _first_item(splits["train"], file)
    kind = _kind(targets)
    shapes = tuple(tuple(part.shape[1:]) for part in inputs)
    num_outputs = _outputs(splits["train"], kind, targets, file)
    for name, dataset in splits.items():
        _check_targets(dataset, file, target_check(file, name, kind, num_outputs))
    sizes = ",".join(f"{name}={len(dataset)}" for name, dataset in splits.items())
    return OwnDatasets(
        file=str(file.path),
        source=source,
        splits=Carried(str(file.path), splits),
        kind=kind,
        input_shape=shapes[0] if len(shapes) == 1 else shapes,
        num_outputs=num_outputs,
        fingerprint=f"{source_fingerprint(source)}-{sizes}",
    )


def target_check(file: OwnFile, split: SplitName, kind: TargetKind, num_outputs: int) -> TargetCheck | None:
    """Return which targets the items of a split may have; None: only the file's own loss knows."""
    if kind == "other" or file.function("loss") is not None:
        return None
    return TargetCheck(place=f"{file.path.name}: {split}", classes=num_outputs if kind == "classes" else None)


def _check_split(name: str, dataset: Any, file: OwnFile) -> None:
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        raise UserCodeError(
            f"{file.path.name}: the {name} items are a {type(dataset).__name__}; needed: a dataset with a length and "
            "items by number"
        )
    if len(dataset) == 0:
        raise BadDataError(f"{file.path.name}: there are no {name} items")


def _check_targets(dataset: Any, file: OwnFile, check: TargetCheck | None) -> None:
    """Look at all targets of a dataset of tensors; of any other they are known when they are read."""
    if check is not None and type(dataset) is TensorDataset and file.function("collate") is None:
        check.checked(dataset.tensors[-1].cpu(), lambda: range(len(dataset)))


def _first_item(dataset: Any, file: OwnFile) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
    with kept_generators():
        seed_generators(0)
        return Collation(own=file.function("collate"))([read_item(dataset, 0)])


def _kind(targets: torch.Tensor) -> TargetKind:
    if targets.is_floating_point():
        return "numbers" if targets.numel() == 1 else "other"
    return "classes" if targets.ndim == 1 and targets.dtype == torch.int64 else "other"


def _outputs(dataset: Any, kind: TargetKind, targets: torch.Tensor, file: OwnFile) -> int:
    """Count the numbers that a network answers: by NUM_OUTPUTS of the file, the dataset's word, or all its targets."""
    given = getattr(file.module, "NUM_OUTPUTS", None)
    if given is not None:
        return int(given)
    if kind != "classes":
        return targets.numel()
    classes = getattr(dataset, "classes", None)
    if classes is not None:
        return len(classes)
    largest = max(_targets(dataset))
    if largest < 0:
        raise BadDataError(f"{file.path.name}: the largest target of the train items is {largest}; classes begin at 0")
    return 1 + largest


def _targets(dataset: Any) -> Iterable[int]:
    known = getattr(dataset, "targets", None)
    if known is not None and getattr(dataset, "target_transform", None) is None:
        return (int(target) for target in known)
    if type(dataset) is TensorDataset:
        return (int(dataset.tensors[-1].max()),)
    return (int(read_item(dataset, index)[1]) for index in range(len(dataset)))
