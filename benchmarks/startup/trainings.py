"""What `trial_startup` trains: a toy network on several ranks, and trials that train nothing at all.

The same training runs in our workers and in those of Ray Train, so that only what happens around it differs. Moments
are `time.monotonic_ns`, which all processes of a Linux machine share.
"""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from trainers.config import Direction, EvaluateTask, TrainTask
from trainers.data.spec import DataSpec
from trainers.reporting import Decision, Report, Reporter, TrialResult
from trainers.trainer import Trainer

if TYPE_CHECKING:
    from trainers.distributed import Ranks

__all__ = ["InstantTrainer", "TimedTrainer", "loss_after", "toy_data", "train_toy"]

FEATURES = 32
ITEMS = 64
STEPS = 4
"""Optimizer steps of an epoch, each over all items of the rank."""


def toy_data() -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs and targets, the same on every rank."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(ITEMS, FEATURES, generator=generator)
    return inputs, inputs[:, :1].square()


def train_toy(
    data: tuple[torch.Tensor, torch.Tensor],
    group: dist.ProcessGroup | None,
    epochs: int,
    go_on: Callable[[int, float], bool],
) -> Mapping[str, int]:
    """Build the network, train it, and ask after every epoch whether to go on.

    Args:
        data: what `toy_data` returned.
        group: over which gradients are averaged; None for one rank.
        epochs: of `STEPS` steps each.
        go_on: is given the number of finished epochs and the loss.

    Returns:
        When the training was entered (`entered_ns`), when its first step began (`first_step_ns`), when its last answer
        had come (`trained_ns`), and how long it waited for all answers (`asking_ns`).
    """
    entered_ns = time.monotonic_ns()
    inputs, targets = data
    network: nn.Module = nn.Sequential(nn.Linear(FEATURES, 16), nn.ReLU(), nn.Linear(16, 1))
    model = network if group is None else DistributedDataParallel(network, process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    first_step_ns = time.monotonic_ns()
    asking_ns = 0
    for epoch in range(1, epochs + 1):
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            loss.backward()  # type: ignore[no-untyped-call]  # torch's own
            optimizer.step()
        asked_ns = time.monotonic_ns()
        goes_on = go_on(epoch, float(loss.detach()))
        asking_ns += time.monotonic_ns() - asked_ns
        if not goes_on:
            break
    return {
        "entered_ns": entered_ns,
        "first_step_ns": first_step_ns,
        "trained_ns": time.monotonic_ns(),
        "asking_ns": asking_ns,
    }


def loss_after(epoch: int, x: float) -> float:
    """What a trial that trains nothing reports."""
    return (x - 0.3) ** 2 + 1 / epoch


class _BenchmarkTrainer(Trainer):
    hyperparameters: ClassVar[frozenset[str]] = frozenset({"x"})
    metrics: ClassVar[Mapping[str, Direction]] = {"loss": "minimize"}

    def check(self, data: DataSpec) -> None:
        """Take any data: they are made up."""

    def load(self, data: DataSpec) -> Any:
        """Return the toy's inputs and targets."""
        return toy_data()

    def fingerprint(self, data: Any) -> str:
        """Identify data that are always the same."""
        return "trial-startup"

    def evaluate(self, task: EvaluateTask, data: Any, ranks: "Ranks") -> Mapping[str, float]:
        """Refuse: no checkpoint is written."""
        raise NotImplementedError("the trainings of this benchmark write no checkpoints")


class TimedTrainer(_BenchmarkTrainer):
    """Trains the toy on all ranks; the result's facts are the moments of rank 0."""

    def fit(self, task: TrainTask, data: Any, ranks: "Ranks", reporter: Reporter) -> TrialResult:
        """Train, report every epoch, and do as told."""

        def go_on(epoch: int, loss: float) -> bool:
            mine = reporter(Report(epoch=epoch, metrics={"loss": loss})) if ranks.is_first else None
            return ranks.broadcast_decision(mine) is Decision.CONTINUE

        facts = train_toy(data, ranks.main, task.training.epochs, go_on)
        return TrialResult(outcome="completed", epoch=task.training.epochs, facts=facts)


class InstantTrainer(_BenchmarkTrainer):
    """Reports a formula after epochs that take no time."""

    def fit(self, task: TrainTask, data: Any, ranks: "Ranks", reporter: Reporter) -> TrialResult:
        """Report every epoch."""
        x = task.configuration["x"]
        assert isinstance(x, float)
        for epoch in range(1, task.training.epochs + 1):
            mine = reporter(Report(epoch=epoch, metrics={"loss": loss_after(epoch, x)})) if ranks.is_first else None
            ranks.broadcast_decision(mine)
        return TrialResult(outcome="completed", epoch=task.training.epochs)
