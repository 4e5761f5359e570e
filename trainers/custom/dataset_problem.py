"""A person's datasets as a training problem, with their loss and their metrics where the file defines them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from trainers.classification import check_logits
from trainers.config import TrainConfig
from trainers.custom.course import numbers_of
from trainers.custom.datasets import OwnDatasets, target_check
from trainers.custom.files import OwnFile
from trainers.custom.own_meter import LossMeter, OwnMeter
from trainers.data.spec import SplitName
from trainers.errors import UserCodeError
from trainers.feeding.items import Collation, Key, KeyPlan
from trainers.feeding.loader import ItemReader
from trainers.losses import Loss, build_loss, build_number_loss
from trainers.metrics.classification import ClassificationMeter
from trainers.metrics.regression import RegressionMeter
from trainers.networks import form_of, items_in_words
from trainers.problem import Batch, Items, Meter, Problem
from trainers.reporting import JsonValue

__all__ = ["DatasetProblem"]


class DatasetProblem(Problem):
    """What the targets of a person's datasets are, told from the inputs.

    Args:
        data: the datasets.
        file: may define `loss(answers, targets)`, `metrics(answers, targets)` and `collate(items)`.
        training: which loss, and how items are read.
        device: where batches are put.
    """

    reads_items = True

    def __init__(self, data: OwnDatasets, file: OwnFile, training: TrainConfig, device: torch.device) -> None:
        self.input_shape, self.num_outputs, self.fingerprint = data.input_shape, data.num_outputs, data.fingerprint
        self.training_items = len(data.split("train"))
        self._data, self._file, self._training, self._device = data, file, training, device
        self._is_usual = file.function("loss") is None and data.kind != "other"
        self._loss = _loss(data, file, training, device)
        self._example: Batch | None = None

    def example(self) -> Batch:
        """Return the first training item, as it is read for a measurement."""
        if self._example is None:
            self._example = next(self._reader("train", workers=0).read([[Key(0, 0, 0)]]))
        return self._example

    def training_batches(
        self, epoch: int, order: torch.Tensor, positions: Sequence[torch.Tensor | slice]
    ) -> Iterator[Batch]:
        """Yield batches as the dataset gives them in this epoch."""
        plan = KeyPlan(order.cpu(), positions, epoch)
        return self._reader("train", self._training.loader_workers).read(plan)

    def items(self, split: SplitName) -> Items:
        """Return a split to measure on."""
        dataset = self._data.split(split)
        return _Measured(self._reader(split, self._training.loader_workers), len(dataset))

    def losses(self, answers: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the loss of each item; a mean over items counts for each of them."""
        return self._loss(answers, targets)

    def meter(self) -> Meter:
        """Return an empty meter: of the usual metrics where there is a usual loss, of the file's own, or of both."""
        own = self._file.function("metrics")
        usual: Meter
        if not self._is_usual:
            usual = LossMeter(self._loss, self._device)
        elif self._data.kind == "classes":
            usual = ClassificationMeter(self.num_outputs, self._device)
        else:
            usual = RegressionMeter(self._device)
        return usual if own is None else OwnMeter(usual, _checked(own))

    def check_answers(self, answers: object, batch: Batch) -> None:
        """Refuse answers that do not fit the targets or the loss."""
        if self._data.kind == "classes" and self._is_usual:
            check_logits(answers, batch, self.num_outputs)
            return
        items = len(batch)
        if not isinstance(answers, torch.Tensor) or answers.shape[:1] != (items,):
            raise UserCodeError(
                f"the network answers {items_in_words(items)} with {form_of(answers)}; needed: a tensor whose first "
                f"size is {items}"
            )
        self.losses(answers, batch.targets)

    def blueprint(self) -> Mapping[str, JsonValue]:
        """Return what the network was told about the inputs."""
        return {"input_shape": _as_lists(self.input_shape), "num_outputs": self.num_outputs, "kind": self._data.kind}

    def facts(self) -> Mapping[str, JsonValue]:
        """Return the numbers of items."""
        return {"training_items": self.training_items, "validation_items": len(self._data.split("validation"))}

    def _reader(self, split: SplitName, workers: int) -> ItemReader:
        return ItemReader(
            self._data.split(split),
            seed=self._training.seed,
            workers=workers,
            device=self._device,
            collation=Collation(own=self._file.function("collate"), is_flat=self._is_usual),
            check=target_check(self._file, split, self._data.kind, self.num_outputs),
        )


class _Measured:
    """A split that is only measured."""

    def __init__(self, reader: ItemReader, items: int) -> None:
        self._reader, self._items = reader, items

    def __len__(self) -> int:
        return self._items

    def batches(self, parts: Sequence[slice]) -> Iterator[Batch]:
        return self._reader.read(KeyPlan(torch.arange(self._items), parts, epoch=0))


def _loss(data: OwnDatasets, file: OwnFile, training: TrainConfig, device: torch.device) -> Loss:
    if training.class_weights != "none":
        raise UserCodeError(
            f"class_weights={training.class_weights!r} needs the classes of all items beforehand, which the datasets "
            f"of {file.path.name} tell one by one; give 'none', or weigh the classes in loss(answers, targets)"
        )
    own = file.function("loss")
    if own is not None:
        return _per_item(own)
    if data.kind == "classes":
        return build_loss(training, np.zeros(0, dtype=np.int64), data.num_outputs, device)
    if data.kind == "numbers":
        return build_number_loss(training)
    raise UserCodeError(
        f"{file.path.name}: the targets of the datasets are neither whole numbers (classes) nor numbers; define "
        "loss(answers, targets)"
    )


def _per_item(own: Callable[..., Any]) -> Loss:
    def losses(answers: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        loss = own(answers, targets)
        items = len(targets)
        if not isinstance(loss, torch.Tensor) or (loss.ndim > 0 and len(loss) != items):
            shape = tuple(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__
            raise UserCodeError(
                f"loss(answers, targets) of {items} items gave {shape}; needed: their mean, or {(items,)}"
            )
        loss = loss.float()
        return loss.expand(items) if loss.ndim == 0 else loss.flatten(1).mean(dim=1) if loss.ndim > 1 else loss

    return losses


def _checked(own: Callable[..., Any]) -> Callable[[torch.Tensor, torch.Tensor], dict[str, float]]:
    return lambda answers, targets: numbers_of(own(answers, targets), "metrics(answers, targets)")


def _as_lists(shape: Any) -> JsonValue:
    return [_as_lists(part) for part in shape] if isinstance(shape, tuple) else int(shape)
