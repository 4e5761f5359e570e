"""Learns on one rank of a trial: the network, its data and its optimizer, step by step.

A training batch is cut over the ranks and over micro-batches, yet each item weighs the same: the gradient is
that of the mean loss over the whole batch, however it was cut and however small the last batch of an epoch is.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch

from trainers.artifact_files import Location
from trainers.checkpoint import Checkpoint
from trainers.compiling import Compilation
from trainers.config import TrainTask
from trainers.data.batches import epoch_batches, epoch_order
from trainers.distributed import Ranks
from trainers.finite import check_finite, check_steps
from trainers.inheriting import inherit_weights
from trainers.large_networks import build_looking_ahead
from trainers.memory_format import arrange, resolve_memory_format
from trainers.methods.building import build_methods
from trainers.methods.method import AveragingMethod, MixingMethod
from trainers.methods.mixing import mixed_batches
from trainers.networks import build_network, multiply_adds
from trainers.optimization import Optimization
from trainers.optimizers import build_optimizer
from trainers.parallel.batch_norm import whose_statistics
from trainers.parallel.building import build_parallel
from trainers.precision import MixedPrecision, check_precision, resolve_precision
from trainers.problem import Batch, Problem
from trainers.reporting import JsonValue
from trainers.schedules import build_schedule
from trainers.seeds import Purpose, seed_torch, torch_seed
from trainers.sharing_choice import holds_a_part
from trainers.watching import Watch

__all__ = ["Learner"]

STEPS_PER_CHECK = 200
"""Losses stay on the device for so many steps before they are checked: each check waits for the device."""


class Learner:
    """One rank's part in training one configuration; all ranks call the same methods in the same order.

    It seeds torch's global generators, which random layers draw from: whoever makes one restores them
    (`fork_rng`).

    Args:
        task: what is trained.
        problem: on what, on this rank's device.
        ranks: this process's place.
        watch: looks on.
    """

    def __init__(self, task: TrainTask, problem: Problem, ranks: Ranks, watch: Watch) -> None:
        training = task.training
        self._task, self._training, self._problem, self._ranks = task, training, problem, ranks
        self._watch = watch
        self._details: Mapping[str, JsonValue] = {}
        self._batches = epoch_batches(problem.training_items, training.batch_size)
        self._micro_batch = training.micro_batch(ranks.world_size)
        check_precision(training.precision, ranks.device)
        self._precision = MixedPrecision(resolve_precision(training.precision, ranks.device), ranks.device)
        seed_torch(torch_seed(Purpose.WEIGHTS, training.seed), ranks.device)
        build = partial(build_network, task.space, task.configuration, problem)
        network = build_looking_ahead(build, watch.check_network)
        if not holds_a_part(training, ranks.world_size):
            network.to(ranks.device)
        example = problem.check_network(network)
        self._inheritance = inherit_weights(task, network, problem, example.inputs)
        self._parameters = sum(weight.numel() for weight in network.parameters())
        self._multiply_adds = multiply_adds(network, example.inputs)
        self._batch_norm = whose_statistics(network, training, ranks.world_size, self._batches[0].stop)
        self._methods = build_methods(task, problem, ranks)  # a teacher takes memory, too
        watch.check_memory(network, example, self.precision)
        self._parallel = build_parallel(network, training, ranks, self._precision, example)
        self._memory_format = resolve_memory_format(
            training.memory_format, ranks.device, self._precision.used, problem.has_images
        )
        # FSDP takes weights in the usual order only
        arrange(self._parallel.network, self._memory_format, weights=self._parallel.used != "fsdp")
        self._compilation = Compilation() if training.compile else None
        self._mixing = next((method for method in self._methods if isinstance(method, MixingMethod)), None)
        self._averaging = next((method for method in self._methods if isinstance(method, AveragingMethod)), None)
        self._optimization = Optimization(
            self._parallel,
            self._parallel.build_optimizer(lambda network: build_optimizer(network, training)),
            self._precision,
            build_schedule(training, training.epochs * len(self._batches), problem.training_items),
            gradient_clip=training.gradient_clip,
            methods=self._methods,
            see_gradients=watch.gradients,
        )

    def read_checkpoint(self, location: Location) -> Checkpoint:
        """Read a checkpoint for `load_state`: of what is cut over the ranks this rank's parts alone."""
        return self._parallel.read_checkpoint(location)

    def load_state(self, network: Mapping[str, torch.Tensor], optimization: Mapping[str, Any]) -> None:
        """Go on from the states of a checkpoint; one of a release without methods has nothing of theirs."""
        if self._averaging is not None:
            self._parallel.load_network(network)
            self._averaging.go_on_from(self._parallel.network)
        self._parallel.load_network(optimization.get("weights") or network)
        self._optimization.load_state_dict(optimization)
        for method in self._methods:
            method.load_state_dict(optimization.get("methods", {}).get(type(method).__name__, {}))

    def open_watch(self, first_epoch: int) -> None:
        """Prepare what is written of the training, from this epoch on."""
        self._watch.open(first_epoch, self._problem, self._parallel.network, len(self._batches), self.precision)

    def connect(self) -> None:
        """Join the ranks' gradients; a collective. `disconnect` must follow before the groups close."""
        self._parallel.connect()
        if self._compilation is not None:
            self._compilation.begin(self._parallel.network)

    def disconnect(self) -> None:
        """Drop what joins the ranks."""
        if self._compilation is not None:
            self._compilation.end()
        self._parallel.disconnect()

    @property
    def learning_rate(self) -> float:
        """The learning rate of the last optimizer step."""
        return self._optimization.last_learning_rate

    @property
    def training_items(self) -> int:
        """Items that one epoch trains, over all ranks."""
        return self._problem.training_items

    @property
    def precision(self) -> str:
        """The precision really used."""
        return self._precision.used

    def train_epoch(self, epoch: int, last_checkpoint: str | None) -> float:
        """Train one epoch and return the mean loss per item over all ranks.

        Afterwards weights and buffers are equal on all ranks that hold them.

        Args:
            epoch: counted from 1.
            last_checkpoint: for the message of an error.

        Raises:
            NonFiniteLossError: the loss of a step was NaN or infinite, or none was made for want of finite gradients.
            RanksDivergedError: weights or buffers differ.
        """
        seed, device = self._training.seed, self._ranks.device
        seed_torch(torch_seed(Purpose.LAYERS, seed, epoch, self._ranks.rank), device)
        for method in self._methods:
            method.begin_epoch(epoch, self._batches, device)
        plan = [self._parallel.parts(batch) for batch in self._batches]
        self._watch.begin_epoch(len(self._batches))
        feed = self._watch.batches(self._training_batches(epoch, plan))
        sums: list[torch.Tensor] = []
        steps_before = self._optimization.steps_made
        loss_sum = 0.0
        self._parallel.network.train()
        for index, (batch, parts) in enumerate(zip(self._batches, plan, strict=True)):
            sums.append(
                self._parallel.train_batch(
                    feed, parts, batch.stop - batch.start, self._losses, self._optimization.backward
                )
            )
            is_last = index + 1 == len(self._batches)
            self._optimization.step(measures_norm=is_last)
            self._watch.step_done()
            if is_last or (index + 1) % STEPS_PER_CHECK == 0:
                first = index + 1 - len(sums)
                loss_sum += self._check_losses(torch.stack(sums), first, epoch, steps_before, last_checkpoint)
                sums.clear()
        made, skipped = self._optimization.steps_made - steps_before, self._optimization.skipped_in_a_row
        check_steps(made, skipped, epoch=epoch, precision=self.precision, checkpoint=last_checkpoint)
        self._watch.end_epoch(made)
        self._parallel.end_epoch()
        if self._averaging is not None:
            with self._averaging.averaged(self._parallel.network):
                self._parallel.end_epoch()
        return loss_sum / self._problem.training_items

    def measure(self) -> dict[str, float]:
        """Return the metrics of the validation split, over all ranks."""
        items = self._problem.items("validation")
        network = self._parallel.network
        meter = self._problem.meter()
        with nullcontext() if self._averaging is None else self._averaging.averaged(network):
            metrics = self._parallel.measure(items, self._problem.items_per_pass, meter)
        self._details = meter.details()
        return metrics

    def details(self) -> Mapping[str, JsonValue]:
        """Return what the last measurement has found beside the metrics."""
        return self._details

    def inside(self) -> Mapping[str, float]:
        """Return what the last epoch has cost, the norm of its last gradient, and all steps that were skipped."""
        norm = self._optimization.gradient_norm
        measured = {**self._watch.measurements(), "skipped_steps": float(self._optimization.skipped_steps)}
        return measured if norm is None else {**measured, "gradient_norm": float(norm)}

    def tell(self, epoch: int, metrics: Mapping[str, float]) -> str:
        """Log and draw an epoch, and return its line; rank 0 only."""
        return self._watch.tell(epoch, metrics, self._parallel.network)

    def network_state(self) -> Mapping[str, Any]:
        """Return the weights and buffers that are measured, by name."""
        if self._averaging is None:
            return self._parallel.network_state()
        with self._averaging.averaged(self._parallel.network):
            return {name: tensor.clone() for name, tensor in self._parallel.network_state().items()}

    def optimization_state(self) -> Mapping[str, Any]:
        """Return the state of optimizer, scaler, schedule and methods, and the weights that averages stand for."""
        return {
            **self._optimization.state_dict(),
            "methods": {type(method).__name__: method.state_dict() for method in self._methods},
            "weights": None if self._averaging is None else dict(self._parallel.network_state()),
        }

    def blueprint(self) -> Mapping[str, JsonValue]:
        """Return what builds and feeds the network again."""
        return {
            "space": self._task.space,
            "configuration": {**self._task.asked_for()},
            "built_with": {**self._task.built_with()},
            "precision": self.precision,
            "fingerprint": self._problem.fingerprint,
            **self._problem.blueprint(),
        }

    def facts(self) -> Mapping[str, JsonValue]:
        """Return what was really used and counted."""
        facts: dict[str, JsonValue] = {
            "precision": self.precision,
            "device": _device_name(self._ranks.device),
            "world_size": self._ranks.world_size,
            "parallel": self._parallel.used,
            "memory_format": self._memory_format,
            "parameters": self._parameters,
            "multiply_adds": self._multiply_adds,
            "steps": self._optimization.steps_made,
            "skipped_steps": self._optimization.skipped_steps,
            "micro_batch": self._micro_batch,
            **({"batch_norm": self._batch_norm} if self._batch_norm is not None else {}),
            **({"inherited_share": self._inheritance.share} if self._inheritance is not None else {}),
            "data_fingerprint": self._problem.fingerprint,
            **self._problem.facts(),
            **self._watch.facts(),
            **(self._compilation.facts() if self._compilation is not None else {}),
        }
        return facts

    def _training_batches(self, epoch: int, plan: Sequence[Sequence[slice]]) -> Iterator[Batch]:
        """Return this rank's micro-batches of an epoch, each mixed with its partners where a method asks for it."""
        order = torch.from_numpy(epoch_order(self._problem.training_items, self._training.seed, epoch))
        parts = [part for parts in plan for part in parts if part.start < part.stop]
        fetch = partial(self._problem.training_batches, epoch, order.to(self._ranks.device))
        return fetch(parts) if self._mixing is None else mixed_batches(self._mixing, parts, fetch)

    def _losses(self, answers: torch.Tensor, batch: Batch) -> torch.Tensor:
        losses_N = self._problem.losses(answers, batch.targets)
        for method in self._methods:
            losses_N = method.losses(batch, answers, losses_N)
        return losses_N

    def _check_losses(
        self, sums: torch.Tensor, first: int, epoch: int, steps_before: int, last_checkpoint: str | None
    ) -> float:
        """Add the ranks' losses of some steps, refuse one that is not finite, and return their sum."""
        losses = self._ranks.sum_(sums.to(torch.float64)).cpu()
        strange = torch.nonzero(~torch.isfinite(losses))
        if len(strange):
            index = int(strange[0])
            check_finite(
                float(losses[index]),
                name="loss",
                step=(epoch - 1) * len(self._batches) + first + index + 1,
                epoch=epoch,
                learning_rate=self._optimization.learning_rate_at(steps_before + first + index),
                precision=self.precision,
                checkpoint=last_checkpoint,
            )
        return float(losses.sum())


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
