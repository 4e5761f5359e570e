"""Learns to classify images on one rank of a trial: the network, its data and its optimizer, step by step.

A training batch is cut over the ranks and over micro-batches, yet each item weighs the same: the gradient is
that of the mean loss over the whole batch, however it was cut and however small the last batch of an epoch is.
"""

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from trainers.config import TrainTask
from trainers.data.arrays import ImageData
from trainers.data.augmentation import Changes, draw_changes
from trainers.data.batches import epoch_batches, epoch_order, micro_batches
from trainers.distributed import Ranks
from trainers.image_networks import build_network, check_logits, measure_images, multiply_adds, unused_weights
from trainers.images import DeviceImages
from trainers.losses import check_finite, cross_entropy_sum
from trainers.optimization import Optimization
from trainers.optimizers import build_optimizer
from trainers.precision import MixedPrecision, check_precision, resolve_precision
from trainers.reporting import JsonValue
from trainers.seeds import Purpose, random_generator, seed_torch, torch_seed

__all__ = ["ImageLearner"]

logger = logging.getLogger(__name__)

STEPS_PER_CHECK = 200
"""Losses stay on the device for so many steps before they are checked: each check waits for the device."""


class ImageLearner:
    """One rank's part in training one configuration; see `trainers.loop.Learner` for the methods of the loop.

    It seeds torch's global generators, which random layers draw from: whoever makes one restores them
    (`fork_rng`).
    """

    def __init__(self, task: TrainTask, data: ImageData, ranks: Ranks) -> None:
        training = task.training
        self._task, self._training, self._data, self._ranks = task, training, data, ranks
        self._train = DeviceImages(data.train, data, ranks.device)
        self._validation = DeviceImages(data.validation, data, ranks.device)
        self._batches = epoch_batches(len(data.train), training.batch_size)
        self._micro_batch = training.micro_batch(ranks.world_size)
        check_precision(training.precision, ranks.device)
        self._precision = MixedPrecision(resolve_precision(training.precision, ranks.device), ranks.device)
        seed_torch(torch_seed(Purpose.WEIGHTS, training.seed), ranks.device)
        self._network = build_network(task.space, task.configuration, data).to(ranks.device)
        check_logits(self._network, self._train.take(slice(0, 1))[0], data.num_classes)
        total_steps = training.epochs * len(self._batches)
        self._optimization = Optimization(
            self._network,
            build_optimizer(self._network, training),
            self._precision,
            learning_rate=training.learning_rate,
            total_steps=total_steps,
            warmup_steps=round(training.warmup_fraction * total_steps),
            gradient_clip=training.gradient_clip,
        )
        self._parallel: DistributedDataParallel | None = None

    def load_state(self, network: Mapping[str, torch.Tensor], optimization: Mapping[str, Any]) -> None:
        """Go on from the states of a checkpoint."""
        self._network.load_state_dict(network)
        self._optimization.load_state_dict(optimization)

    def connect(self) -> None:
        """Join the ranks' gradients; a collective. `disconnect` must follow before the groups close."""
        if self._ranks.world_size == 1:
            return
        unused = unused_weights(self._network, self._train.take(slice(0, 1))[0])
        if unused:
            logger.warning("weights without a gradient names=%s", ",".join(unused))
        device = self._ranks.device
        self._parallel = DistributedDataParallel(
            self._network,
            device_ids=[device] if device.type == "cuda" else None,
            process_group=self._ranks.main,
            forward_sync_buffers=False,  # buffers are made equal once per epoch
            gradient_as_bucket_view=True,
            find_unused_parameters=bool(unused),
        )

    def disconnect(self) -> None:
        """Drop the wrapper that joins the gradients."""
        self._parallel = None

    @property
    def learning_rate(self) -> float:
        """The learning rate of the last optimizer step."""
        return self._optimization.last_learning_rate

    @property
    def training_items(self) -> int:
        """Items that one epoch trains, over all ranks."""
        return len(self._train)

    @property
    def precision(self) -> str:
        """The precision really used."""
        return self._precision.used

    def train_epoch(self, epoch: int, last_checkpoint: str | None) -> float:
        """Train one epoch (counted from 1) and return the mean loss per item over all ranks."""
        seed, device, items = self._training.seed, self._ranks.device, len(self._train)
        seed_torch(torch_seed(Purpose.LAYERS, seed, epoch, self._ranks.rank), device)
        order = torch.from_numpy(epoch_order(items, seed, epoch)).to(device)
        changes = self._draw_changes(epoch)
        sums = torch.zeros(len(self._batches), device=device)
        steps_before = self._optimization.steps_made
        loss_sum, checked = 0.0, 0
        self._network.train()
        for index, batch in enumerate(self._batches):
            sums[index] = self._train_batch(batch, order, changes)
            if (index + 1) % STEPS_PER_CHECK == 0 or index + 1 == len(self._batches):
                window = slice(checked, index + 1)
                loss_sum += self._check_losses(sums[window], window, epoch, steps_before, last_checkpoint)
                checked = index + 1
        self._ranks.average_buffers(self._network)
        self._ranks.check_equal(self._network)
        return loss_sum / items

    def measure(self) -> dict[str, float]:
        """Return the metrics of the validation split, over all ranks."""
        return measure_images(self._network, self._validation, self._precision, self._ranks, self._data)

    def network_state(self) -> Mapping[str, Any]:
        """Return weights and buffers by name."""
        return self._network.state_dict()

    def optimization_state(self) -> Mapping[str, Any]:
        """Return the state of optimizer, scaler and schedule."""
        return self._optimization.state_dict()

    def blueprint(self) -> Mapping[str, JsonValue]:
        """Return what builds and feeds the network again."""
        return {
            "space": self._task.space,
            "configuration": dict(self._task.configuration),
            "input_shape": list(self._data.input_shape),
            "class_names": list(self._data.class_names),
            "mean": list(self._data.mean),
            "std": list(self._data.std),
            "precision": self.precision,
            "fingerprint": self._data.fingerprint,
        }

    def facts(self) -> Mapping[str, JsonValue]:
        """Return what was really used and counted."""
        facts: dict[str, JsonValue] = {
            "precision": self.precision,
            "device": _device_name(self._ranks.device),
            "world_size": self._ranks.world_size,
            "parameters": sum(weight.numel() for weight in self._network.parameters()),
            "multiply_adds": multiply_adds(self._network, self._data.input_shape),
            "training_items": len(self._train),
            "validation_items": len(self._validation),
            "steps": self._optimization.steps_made,
            "skipped_steps": self._optimization.skipped_steps,
            "micro_batch": self._micro_batch,
            "data_fingerprint": self._data.fingerprint,
        }
        if self._ranks.device.type == "cuda":
            facts["device_memory_mib"] = torch.cuda.max_memory_allocated(self._ranks.device) / 2**20
        return facts

    def _draw_changes(self, epoch: int) -> Changes | None:
        """Draw the augmentation of an epoch; row i belongs to the i-th item in the epoch's order."""
        training = self._training
        if training.augmentation == 0.0:
            return None
        generator = random_generator(Purpose.AUGMENTATION, training.seed, epoch)
        return draw_changes(len(self._train), training.augmentation, generator).to(self._ranks.device)

    def _train_batch(self, batch: slice, order: torch.Tensor, changes: Changes | None) -> torch.Tensor:
        """Make one optimizer step; return this rank's loss, summed over its items."""
        ranks = self._ranks
        parts = micro_batches(batch, self._micro_batch, ranks.rank, ranks.world_size)
        # The ranks' gradients are averaged, so each rank's share of the mean is taken `world_size` times.
        weight = ranks.world_size / (batch.stop - batch.start)
        total = torch.zeros((), device=ranks.device)
        for part in parts:
            with self._gradients(joined=part is parts[-1]):
                loss = self._loss(order[part], changes[part] if changes is not None else None)
                self._optimization.backward(loss * weight)
            total += loss.detach()
        if not parts:
            self._join_without_items(order[:1])
        self._optimization.step()
        return total

    def _loss(self, items: torch.Tensor, changes: Changes | None) -> torch.Tensor:
        images_NCHW, labels_N = self._train.take(items, changes)
        with self._precision.autocast():
            logits_NK = self._model(images_NCHW)
        return cross_entropy_sum(logits_NK, labels_N, self._training.label_smoothing)

    def _join_without_items(self, any_item: torch.Tensor) -> None:
        """Take part in joining the gradients with zeros, when the batch has no item for this rank.

        Evaluation mode keeps the item out of the statistics of batch normalisation.
        """
        self._network.eval()
        images_NCHW, _ = self._train.take(any_item)
        with self._precision.autocast():
            logits_NK = self._model(images_NCHW)
        self._optimization.backward(logits_NK.float().sum() * 0.0)
        self._network.train()

    @property
    def _model(self) -> nn.Module:
        return self._parallel if self._parallel is not None else self._network

    def _gradients(self, joined: bool) -> AbstractContextManager[None]:
        """Return the context of a micro-batch: only the last one of a step joins the ranks' gradients."""
        if self._parallel is None or joined:
            return nullcontext()
        context: AbstractContextManager[None] = self._parallel.no_sync()
        return context

    def _check_losses(
        self, sums: torch.Tensor, steps: slice, epoch: int, steps_before: int, last_checkpoint: str | None
    ) -> float:
        """Add the ranks' losses of some steps, refuse one that is not finite, and return their sum."""
        losses = self._ranks.sum_(sums.to(torch.float64)).cpu()
        strange = torch.nonzero(~torch.isfinite(losses))
        if len(strange):
            index = int(strange[0])
            check_finite(
                float(losses[index]),
                name="loss",
                step=(epoch - 1) * len(self._batches) + steps.start + index + 1,
                epoch=epoch,
                learning_rate=self._optimization.learning_rate_at(steps_before + steps.start + index),
                precision=self.precision,
                checkpoint=last_checkpoint,
            )
        return float(losses.sum())


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
