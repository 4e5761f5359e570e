"""Images whose digit is told as a number: the smallest problem of numbers that the tiny networks can learn."""

from collections.abc import Iterator, Sequence

import torch

from trainers.config import TrainConfig
from trainers.data.arrays import ImageData
from trainers.data.spec import SplitName
from trainers.image_problem import ImageProblem
from trainers.losses import build_number_loss
from trainers.metrics.regression import RegressionMeter
from trainers.problem import Batch, Items, Meter

__all__ = ["NumberProblem"]


class NumberProblem(ImageProblem):
    """How large is the digit in an image? Targets are standardised."""

    def __init__(self, data: ImageData, training: TrainConfig, device: torch.device) -> None:
        super().__init__(data, TrainConfig(seed=training.seed), device)
        self.num_outputs = 1
        self._number_loss = build_number_loss(training)

    def example(self) -> Batch:
        return _numbered(super().example())

    def training_batches(
        self, epoch: int, order: torch.Tensor, positions: Sequence[torch.Tensor | slice]
    ) -> Iterator[Batch]:
        return map(_numbered, super().training_batches(epoch, order, positions))

    def items(self, split: SplitName) -> Items:
        return _NumberItems(super().items(split))

    def losses(self, answers: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return self._number_loss(answers, targets)

    def meter(self) -> Meter:
        return RegressionMeter(self._device)

    def check_answers(self, answers: object, batch: Batch) -> None:
        assert isinstance(answers, torch.Tensor) and answers.shape == (len(batch), 1)


class _NumberItems:
    def __init__(self, items: Items) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def batches(self, parts: Sequence[slice]) -> Iterator[Batch]:
        return map(_numbered, self._items.batches(parts))


def _numbered(batch: Batch) -> Batch:
    return Batch(batch.inputs, (batch.targets.float() - 4.5) / 2.87)
