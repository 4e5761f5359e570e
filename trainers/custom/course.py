"""The epochs of a training that a person's own code runs: what it reports is checked, compared and handed on."""

import logging
import time
from collections.abc import Mapping
from typing import Any

from search_spaces.errors import did_you_mean
from trainers.config import TrainTask
from trainers.early_stopping import BestEpoch
from trainers.errors import NonFiniteLossError, UserCodeError
from trainers.reporting import CheckpointFile, Decision, JsonValue, Report, Reporter, TrialResult

__all__ = ["Course", "numbers_of", "origin_of"]

logger = logging.getLogger(__name__)


class Course:
    """Where a training stands; the same on every rank.

    Args:
        task: what is trained.
        reporter: asked after every epoch; on rank 0 only.
    """

    def __init__(self, task: TrainTask, reporter: Reporter) -> None:
        training = task.training
        self._training, self._reporter = training, reporter
        self.best = BestEpoch(direction=training.direction, patience=training.patience, min_change=training.min_change)
        self.epoch = 0
        self.decision = Decision.CONTINUE
        self._reports = 0
        self._began = self._epoch_began = time.perf_counter()

    @property
    def is_done(self) -> bool:
        """Whether all epochs have been reported, or there is no hope for a better one."""
        return self.epoch >= self._training.epochs or self.best.is_exhausted

    @property
    def has_reported(self) -> bool:
        """Whether there was a report, or nothing was left to report."""
        return self._reports > 0 or self.is_done

    @property
    def is_over(self) -> bool:
        """Whether the training shall end."""
        return self.is_done or self.decision is not Decision.CONTINUE

    def resume(self, epoch: int, best: Mapping[str, JsonValue]) -> None:
        """Go on after an epoch that an earlier attempt has reported."""
        self.epoch, self.best = epoch, self.best.restored(best)

    def checked(self, epoch: int, metrics: object) -> dict[str, float]:
        """Return what an epoch has measured as numbers, with the time that it took.

        Raises:
            UserCodeError: the objective is missing or no number.
            NonFiniteLossError: it is NaN or infinite.
        """
        objective = self._training.metric
        numbers = _numbers(metrics, objective, epoch)
        if numbers[objective] - numbers[objective] != 0.0:
            raise NonFiniteLossError(f"{objective} is {numbers[objective]} after epoch {epoch}")
        now = time.perf_counter()
        numbers.setdefault("epoch_s", now - self._epoch_began)
        self._epoch_began = now
        return numbers

    def take(self, epoch: int, numbers: Mapping[str, float]) -> None:
        """Take an epoch that was checked; every rank takes the same."""
        self.epoch, self.best = epoch, self.best.after(epoch, numbers[self._training.metric])
        self._reports += 1

    def ask(self, numbers: Mapping[str, float], checkpoint: CheckpointFile | None) -> Decision:
        """Report the epoch that was taken last, and return what is decided; on rank 0 only."""
        return self._reporter(Report(epoch=self.epoch, metrics=numbers, checkpoint=checkpoint))

    def result(self, facts: Mapping[str, JsonValue], of: str, *, tells: bool = True) -> TrialResult:
        """Return how the training has ended.

        One that has ended by itself before its last epoch is complete, as its own early stopping may be meant, and has
        a warning.

        Args:
            facts: what is to be kept besides.
            of: whose training it is, for the warning.
            tells: whether the warning is logged.

        Raises:
            UserCodeError: it has reported nothing.
        """
        if not self.has_reported:
            raise UserCodeError(
                f"the training ended without a report; call context.report({{{self._training.metric!r}: ...}}) after "
                "each epoch"
            )
        facts = {
            **facts,
            "best_epoch": self.best.epoch,
            "best_value": self.best.value,
            "seconds": time.perf_counter() - self._began,
        }
        if not self.is_over:
            text = self._early_end(of)
            facts["warnings"] = [text]
            if tells:
                logger.warning("%s", text)
        if self.decision is Decision.STOP:
            return TrialResult(outcome="stopped", epoch=self.epoch, facts=facts)
        if self.decision is Decision.PAUSE and not self.is_done:
            return TrialResult(outcome="paused", epoch=self.epoch, facts=facts)
        return TrialResult(outcome="completed", epoch=self.epoch, facts=facts)

    def _early_end(self, of: str) -> str:
        return (
            f"{of} ended after epoch {self.epoch} of {self._training.epochs}; the trial counts as complete; if it was "
            "not meant to stop there, look at its log; if it reports once, at its end, give --epochs 1"
        )


def origin_of(task: TrainTask, fingerprint: str) -> dict[str, JsonValue]:
    """Return what a checkpoint says of the training that it is of; `trainers.fitting.check_belongs` reads it."""
    return {"space": task.space, "configuration": dict(task.configuration), "fingerprint": fingerprint}


def numbers_of(metrics: object, origin: str) -> dict[str, float]:
    """Return those of a person's metrics that are numbers.

    Args:
        metrics: name -> number of Python, NumPy or torch.
        origin: where they come from, for the message.

    Raises:
        UserCodeError: they are no mapping.
    """
    if not isinstance(metrics, Mapping):
        raise UserCodeError(f'{origin} gave {metrics!r}; needed: name -> number, such as {{"accuracy": 0.91}}')
    return {str(name): number for name, value in metrics.items() if (number := _number(value)) is not None}


def _numbers(metrics: Any, objective: str, epoch: int) -> dict[str, float]:
    numbers = numbers_of(metrics, f"the report of epoch {epoch}")
    if objective not in metrics:
        names = ", ".join(map(str, metrics)) or "nothing"
        raise UserCodeError(
            f"the report of epoch {epoch} has no metric {objective!r};{did_you_mean(objective, map(str, metrics))} "
            f"it has: {names}"
        )
    if objective not in numbers:
        raise UserCodeError(f"the report of epoch {epoch} says {objective}={metrics[objective]!r}, which is no number")
    return numbers


def _number(value: Any) -> float | None:
    """A number of Python, NumPy or torch (a tensor with one value); None: it is something else, such as a truth."""
    if isinstance(value, bool | str | bytes) or type(value).__name__ in ("bool_", "bool"):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        return None
