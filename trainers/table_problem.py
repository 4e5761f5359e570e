"""Telling a class or a number of each row of a table, as a training problem."""

from collections.abc import Iterator, Mapping, Sequence

import torch

from trainers.classification import check_logits, facts_of_classes
from trainers.config import TrainConfig
from trainers.data.spec import SplitName
from trainers.data.tables import TableData
from trainers.losses import build_loss, build_number_loss
from trainers.metrics.classification import ClassificationMeter
from trainers.metrics.regression import RegressionMeter
from trainers.problem import Batch, Items, Meter, Problem
from trainers.reporting import JsonValue
from trainers.tables import DeviceRows

__all__ = ["TableProblem"]

_MOST_ROWS_PER_PASS = 8192


class TableProblem(Problem):
    """What does a row say?

    Args:
        data: the rows.
        training: which loss.
        device: where they are put.
    """

    def __init__(self, data: TableData, training: TrainConfig, device: torch.device) -> None:
        self.input_shape = data.input_shape
        self.num_outputs = data.num_outputs
        self.fingerprint = data.fingerprint
        self.training_items = len(data.train)
        self._data, self._device = data, device
        self._train = DeviceRows(data.train, data, device)
        if data.kind == "classes":
            self._loss = build_loss(training, data.train.labels_N, data.num_outputs, device)
        else:
            self._loss = build_number_loss(training)

    def example(self) -> Batch:
        """Return the first training row."""
        return self._train.take(slice(0, 1))

    def training_batches(
        self, epoch: int, order: torch.Tensor, positions: Sequence[torch.Tensor | slice]
    ) -> Iterator[Batch]:
        """Yield rows; nothing is changed in them."""
        for places in positions:
            yield self._train.take(order[places])

    def items(self, split: SplitName) -> Items:
        """Return a split to measure on."""
        return DeviceRows(self._data.split(split), self._data, self._device)

    def losses(self, answers: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the loss of each row; of numbers, in units of the training split's standard deviation."""
        return self._loss(answers, targets)

    def meter(self) -> Meter:
        """Return an empty meter; errors of numbers are told in their own units."""
        if self._data.kind == "classes":
            return ClassificationMeter(self.num_outputs, self._device)
        return RegressionMeter(self._device, self._data.target_scale)

    def check_answers(self, answers: object, batch: Batch) -> None:
        """Refuse answers that are not one logit for each class, or one number."""
        check_logits(answers, batch, self.num_outputs)

    def blueprint(self) -> Mapping[str, JsonValue]:
        """Return what turns cells into inputs, and answers into classes or numbers."""
        data = self._data
        return {
            "input_shape": [data.input_shape.numbers, list(data.input_shape.categories)],
            "columns": [column.to_json() for column in data.columns],
            "target": data.target,
            "target_kind": data.kind,
            "class_names": list(data.class_names),
            "target_mean": data.target_mean,
            "target_scale": data.target_scale,
            "notes": list(data.notes),
        }

    def facts(self) -> Mapping[str, JsonValue]:
        """Return the numbers of rows, and of classes the share of the largest."""
        data = self._data
        facts: dict[str, JsonValue] = {
            "training_items": len(data.train),
            "validation_items": len(data.validation),
            "dropped_rows": data.dropped_rows,
        }
        if data.kind == "classes":
            facts |= facts_of_classes(data.validation.labels_N, data.class_names)
        return facts

    @property
    def items_per_pass(self) -> int:
        """Rows that are measured at a time: more than of larger items, since a row is little work."""
        values = sum(part[0].numel() for part in self.example().inputs)
        return min(_MOST_ROWS_PER_PASS, max(1, 2**20 // max(1, values)))
