"""Tells of each epoch in a line of the log, and warns once of each thing that looks wrong; on rank 0."""

import logging
import statistics
from collections.abc import Iterable, Mapping

from trainers.advice import Advice, EpochFacts, Sign, advice_after
from trainers.device_load import DeviceLoad
from trainers.reporting import JsonValue, Report

__all__ = ["EpochLog", "epoch_line", "line_with_objective"]

logger = logging.getLogger(__name__)


class EpochLog:
    """Follows the epochs that this process trains.

    Args:
        epochs: of the whole training.
        load: of the device.

    Attributes:
        overflows_are_usual: whether gradients may overflow without harm, as in fp16, where such steps are skipped.
        steps: optimizer steps of the epoch.
        steps_made: those that were not skipped.
        without_gradient: names of the weights that had no gradient in the last step of the epoch.
        reads_items: whether the training reads its items one by one, which more processes would do faster.
    """

    def __init__(self, epochs: int, load: DeviceLoad) -> None:
        self.overflows_are_usual = self.reads_items = False
        self.steps = self.steps_made = 0
        self.without_gradient: tuple[str, ...] = ()
        self._epochs, self._load = epochs, load
        self._history: list[EpochFacts] = []
        self._seconds: list[float] = []
        self._warnings: dict[Sign, str] = {}

    def epoch(self, epoch: int, metrics: Mapping[str, float]) -> str:
        """Take notice of an epoch that was trained and measured, and return it in a line."""
        self._history.append(self._facts(epoch, metrics))
        self._seconds.append(metrics["epoch_s"])
        line = epoch_line(epoch, self._epochs, metrics, self._load)
        logger.info("%s", line)
        self.warn(advice_after(self._history))
        return line

    def warn(self, found: Iterable[Advice]) -> None:
        """Log what is wrong and keep it, each sign once."""
        for advice in found:
            if advice.sign not in self._warnings:
                self._warnings[advice.sign] = advice.text
                logger.warning("%s", advice.text)

    def facts(self) -> Mapping[str, JsonValue]:
        """Return what is worth keeping of all epochs: their median time, and the warnings if there are any."""
        facts: dict[str, JsonValue] = {}
        if self._seconds:
            facts["epoch_s"] = statistics.median(self._seconds)
        if self._warnings:
            facts["warnings"] = list(self._warnings.values())
        return facts

    def _facts(self, epoch: int, metrics: Mapping[str, float]) -> EpochFacts:
        return EpochFacts(
            epoch=epoch,
            train_loss=metrics["train_loss"],
            validation_loss=metrics.get("loss"),
            gradient_norm=metrics.get("gradient_norm"),
            overflows_are_usual=self.overflows_are_usual,
            steps=self.steps,
            steps_made=self.steps_made,
            without_gradient=self.without_gradient,
            reads_items=self.reads_items,
            data_wait_share=metrics["data_wait_share"],
            utilisation_percent=metrics.get("utilisation_percent"),
            memory_bytes=int(metrics["memory_mib"] * 2**20),
            memory_limit_bytes=self._load.memory_limit_bytes,
        )


def epoch_line(epoch: int, epochs: int, metrics: Mapping[str, float], load: DeviceLoad) -> str:
    """Return an epoch in one line: `epoch 10/100 loss 0.452 lr 0.001 gpu 85 % mem 7.1/8.0 GiB`."""
    busy = metrics.get("utilisation_percent")
    device = "" if busy is None else f" {load.name} {busy:.0f} %"
    memory = f"mem {metrics['memory_mib'] / 2**10:.1f}/{load.memory_limit_bytes / 2**30:.1f} GiB"
    loss, rate = metrics["train_loss"], metrics["learning_rate"]
    return f"epoch {epoch}/{epochs} loss {loss:.4g} lr {rate:.4g}{device} {memory}"


def line_with_objective(report: Report, epochs: int, objective: str) -> str:
    """Return a report in one line: as the log has it, and what the epoch is worth.

    Of a training by a person's own code everything that it has reported is shown.
    """
    if report.line is not None:
        return f"{report.line} {objective} {report.metrics[objective]:.4g}"
    shown = " ".join(f"{name} {value:.4g}" for name, value in report.metrics.items())
    return f"epoch {report.epoch}/{epochs} {shown}"
