"""Telling texts apart as a training problem: tokens on the device, hidden words, cross entropy, metrics."""

from collections.abc import Iterator, Mapping, Sequence

import torch

from trainers.classification import ClassificationProblem, facts_of_classes
from trainers.config import TrainConfig
from trainers.data.spec import SplitName
from trainers.data.texts import TextData
from trainers.data.texts_hiding import HiddenTokens, draw_hidden_tokens
from trainers.data.tokenizer import FILLING, UNKNOWN
from trainers.losses import build_loss
from trainers.problem import Batch, Items
from trainers.reporting import JsonValue
from trainers.seeds import Purpose, random_generator
from trainers.texts import DeviceTexts

__all__ = ["TextProblem"]


class TextProblem(ClassificationProblem):
    """Which class does a text belong to?

    Args:
        data: the texts.
        training: which loss, and how many words are hidden (`augmentation`).
        device: where they are put.
    """

    own_changes = frozenset({"augmentation"})

    def __init__(self, data: TextData, training: TrainConfig, device: torch.device) -> None:
        self.input_shape = data.input_shape
        self.num_outputs = data.num_outputs
        self.fingerprint = data.fingerprint
        self.training_items = len(data.train)
        self._data, self._training, self._device = data, training, device
        self._train = DeviceTexts(data.train, data.input_shape.length, device)
        self._loss = build_loss(training, data.train.labels_N, data.num_outputs, device)

    def example(self) -> Batch:
        """Return the first training text, filled up to the longest length: so it costs what a text costs at most."""
        return self._train.take(slice(0, 1), self._data.input_shape.length)

    def training_batches(
        self, epoch: int, order: torch.Tensor, positions: Sequence[torch.Tensor | slice]
    ) -> Iterator[Batch]:
        """Yield texts, some of their words hidden."""
        hidden = self._draw_hidden(epoch)
        lengths_N = self._train.lengths_N[order.cpu()]  # waits for the device once in an epoch
        for places in positions:
            length = self._train.room(lengths_N[places])
            batch = self._train.take(order[places], length)
            yield batch if hidden is None else _with_hidden(batch, hidden.at(places, length))

    def items(self, split: SplitName) -> Items:
        """Return a split to measure on; nothing is hidden in it."""
        return DeviceTexts(self._data.split(split), self.input_shape.length, self._device)

    def blueprint(self) -> Mapping[str, JsonValue]:
        """Return what turns texts into tokens, and logits into classes."""
        return {
            "input_shape": list(self.input_shape),
            "class_names": list(self._data.class_names),
            "tokenizer": self._data.tokenizer.to_json(),
        }

    def facts(self) -> Mapping[str, JsonValue]:
        """Return the numbers of items, the share of the largest class, and what a text is read as."""
        tokenizer, validation = self._data.tokenizer, self._data.validation
        return {
            "training_items": len(self._data.train),
            "validation_items": len(validation),
            **facts_of_classes(validation.labels_N, self._data.class_names),
            "tokens": tokenizer.kind,
            "vocabulary": tokenizer.vocabulary,
            "text_length": tokenizer.length,
        }

    @property
    def items_per_pass(self) -> int:
        """Texts that are measured at a time: fewer long ones, since networks keep some hundred numbers per token."""
        return min(512, max(1, 2**16 // self._data.input_shape.length))

    def _draw_hidden(self, epoch: int) -> HiddenTokens | None:
        """Draw the hidden tokens of an epoch; row i belongs to the i-th item in the epoch's order."""
        share = self._training.augmentation
        if share == 0.0:
            return None
        generator = random_generator(Purpose.AUGMENTATION, self._training.seed, epoch)
        return draw_hidden_tokens(self.training_items, share, generator).to(self._device)


def _with_hidden(batch: Batch, is_hidden_nL: torch.Tensor) -> Batch:
    (tokens_nL,) = batch.inputs
    return Batch((torch.where(is_hidden_nL & (tokens_nL != FILLING), UNKNOWN, tokens_nL),), batch.targets)
