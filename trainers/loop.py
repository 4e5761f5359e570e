"""The epochs of one trial, whatever is learned: train, measure, save, report, and leave when told to."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from search_spaces.errors import did_you_mean
from trainers.checkpoint import Checkpoint, checkpoint_name, write_checkpoint, write_parts
from trainers.config import TrainTask
from trainers.distributed import Ranks
from trainers.early_stopping import BestEpoch
from trainers.errors import UserCodeError
from trainers.finite import check_finite
from trainers.reporting import Decision, JsonValue, Report, Reporter, TrialResult

__all__ = ["Learner", "Progress", "run_epochs"]


class Learner(Protocol):
    """A network with data and optimizer on one rank; all ranks call the same methods in the same order."""

    @property
    def learning_rate(self) -> float:
        """The learning rate of the last optimizer step."""

    @property
    def training_items(self) -> int:
        """Items that one epoch trains, over all ranks."""

    @property
    def precision(self) -> str:
        """The precision really used."""

    def train_epoch(self, epoch: int, last_checkpoint: str | None) -> float:
        """Train one epoch and return the mean loss per item over all ranks.

        Afterwards weights and buffers are equal on all ranks.

        Args:
            epoch: counted from 1.
            last_checkpoint: for the message of an error.

        Raises:
            NonFiniteLossError: the loss of a step was NaN or infinite.
        """

    def measure(self) -> dict[str, float]:
        """Return the metrics of the validation split, over all ranks."""

    def details(self) -> Mapping[str, JsonValue]:
        """Return what the last `measure` has found beside the metrics."""

    def inside(self) -> Mapping[str, float]:
        """Return what the last epoch has measured of itself: time, load, gradient."""

    def tell(self, epoch: int, metrics: Mapping[str, float]) -> str:
        """Tell people of an epoch that was measured, and return it in a line; called on rank 0 only."""

    def network_state(self) -> Mapping[str, Any]:
        """Return weights and buffers by name, for a checkpoint; every rank calls it."""

    def optimization_state(self) -> Mapping[str, Any]:
        """Return all else that the next step depends on; every rank calls it."""

    def blueprint(self) -> Mapping[str, JsonValue]:
        """Return what builds and feeds the network again."""

    def facts(self) -> Mapping[str, JsonValue]:
        """Return what was really used and counted, for the trial's record."""


@dataclass(slots=True, kw_only=True)
class Progress:
    """How far a trial has come.

    Attributes:
        epoch: number of finished epochs.
        best: the best objective so far.
        checkpoint: path of the last good checkpoint below the artifacts root, or None.
    """

    epoch: int = 0
    best: BestEpoch
    checkpoint: str | None = None


def run_epochs(learner: Learner, task: TrainTask, progress: Progress, ranks: Ranks, reporter: Reporter) -> TrialResult:
    """Train from where `progress` stands until the epochs are done, hope is lost, or the reporter ends it.

    STOP always ends the trial as `stopped`. PAUSE ends it as `paused` only while there is something left to do.

    Raises:
        NonFiniteLossError: the loss or the objective left the numbers; no checkpoint of that epoch is written.
        UserCodeError: the objective was not measured.
        RanksDivergedError: the ranks no longer hold equal weights.
        PeerFailedError: rank 0 could not save or report.
    """
    began = time.perf_counter()
    while progress.epoch < task.training.epochs and not progress.best.is_exhausted:
        decision = _run_epoch(learner, task, progress, ranks, reporter)
        if decision is Decision.STOP:
            return _result("stopped", learner, progress, began)
        is_done = progress.epoch == task.training.epochs or progress.best.is_exhausted
        if decision is Decision.PAUSE and not is_done:
            return _result("paused", learner, progress, began)
    return _result("completed", learner, progress, began)


def _run_epoch(learner: Learner, task: TrainTask, progress: Progress, ranks: Ranks, reporter: Reporter) -> Decision:
    began = time.perf_counter()
    epoch = progress.epoch + 1
    train_loss = learner.train_epoch(epoch, progress.checkpoint)
    trained_s = time.perf_counter() - began
    metrics = learner.measure()
    _check_metrics(metrics, learner, epoch, task, progress)
    progress.epoch = epoch
    progress.best = progress.best.after(epoch, metrics[task.training.metric], learner.details())
    metrics |= {
        "train_loss": train_loss,
        "learning_rate": learner.learning_rate,
        "epoch_s": time.perf_counter() - began,
        "items_per_s": learner.training_items / trained_s,
        **learner.inside(),
    }
    path = _checkpoint_path(task, epoch)
    checkpoint = _checkpoint(learner, task, progress, metrics)
    parts = write_parts(checkpoint, task.artifacts_root, path, ranks)
    decision = None
    with ranks.together("saving and reporting the epoch"):
        if ranks.is_first:
            file = write_checkpoint(checkpoint, task.artifacts_root, path, parts)
            line = learner.tell(epoch, metrics)
            decision = reporter(Report(epoch=epoch, metrics=metrics, checkpoint=file, line=line))
    progress.checkpoint = path
    return ranks.broadcast_decision(decision)


def _check_metrics(
    metrics: Mapping[str, float], learner: Learner, epoch: int, task: TrainTask, progress: Progress
) -> None:
    objective = task.training.metric
    if objective not in metrics:
        raise UserCodeError(
            f"no metric {objective!r} was measured after epoch {epoch};{did_you_mean(objective, metrics)} "
            f"measured: {', '.join(sorted(metrics))}; what is no number, or not defined for these items, is left out"
        )
    for name in sorted({"loss", objective} & set(metrics)):
        check_finite(
            metrics[name],
            name=f"validation {name}",
            step=None,
            epoch=epoch,
            learning_rate=learner.learning_rate,
            precision=learner.precision,
            checkpoint=progress.checkpoint,
        )


def _checkpoint(learner: Learner, task: TrainTask, progress: Progress, metrics: Mapping[str, float]) -> Checkpoint:
    """Gather the state of the training; every rank takes part, since it may be spread over them."""
    return Checkpoint(
        epoch=progress.epoch,
        seed=task.training.seed,
        network=learner.network_state(),
        optimization=learner.optimization_state(),
        best=progress.best.state(),
        metrics=metrics,
        blueprint=learner.blueprint(),
    )


def _checkpoint_path(task: TrainTask, epoch: int) -> str:
    return f"{task.checkpoint_dir.rstrip('/')}/{checkpoint_name(epoch)}"


def _result(
    outcome: Literal["completed", "stopped", "paused"], learner: Learner, progress: Progress, began: float
) -> TrialResult:
    facts = {
        **learner.facts(),
        **progress.best.details,
        "best_epoch": progress.best.epoch,
        "best_value": progress.best.value,
        "seconds": time.perf_counter() - began,
    }
    return TrialResult(outcome=outcome, epoch=progress.epoch, facts=facts)
