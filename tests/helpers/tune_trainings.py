"""What Tune programs of the tests train: formulas, so that every outcome is known beforehand.

They live in a module of their own, because Ray's workers import it.
"""

import json
import os
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ray import tune

from tests.helpers.toy import loss_after

__all__ = ["EndsItself", "InterruptAtReport", "StopAllAtReport", "train_and_checkpoint", "train_or_fail", "train_toy"]


def train_toy(config: Mapping[str, Any]) -> None:
    """Train `epochs` epochs of the toy, or without end."""
    epoch = 0
    while epoch != config.get("epochs"):
        epoch += 1
        tune.report({"loss": loss_after(epoch, config["x"])})


def train_or_fail(config: Mapping[str, Any]) -> None:
    """Fail as `mood` says, after the second report; `once`: only where the file is not there yet."""
    mood = config["mood"]
    for epoch in range(1, 5):
        metric = "los" if mood == "other metric" else "loss"
        value = float("nan") if mood == "nan" and epoch == 2 else loss_after(epoch, config["x"])
        tune.report({metric: value})
        if epoch == 2 and mood == "raise":
            raise RuntimeError("the training said no")
        if epoch == 2 and mood == "exit":
            os.kill(os.getpid(), signal.SIGKILL)
        if epoch == 2 and mood == "once" and not Path(config["file"]).exists():
            Path(config["file"]).touch()
            raise RuntimeError("the training said no, once")


def train_and_checkpoint(config: Mapping[str, Any]) -> None:
    """Train four epochs, go on from a checkpoint, and write down which epochs were really trained."""
    checkpoint, epoch = tune.get_checkpoint(), 0
    if checkpoint is not None:
        with checkpoint.as_directory() as folder:
            epoch = json.loads(Path(folder, "epoch.json").read_text())
    for later in range(epoch + 1, 5):
        with open(config["file"], "a") as trained:
            trained.write(f"{later}\n")
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "epoch.json").write_text(json.dumps(later))
            tune.report(
                {"loss": loss_after(later, config["x"]), "epoch": later},
                checkpoint=tune.Checkpoint.from_directory(folder),
            )


class EndsItself(tune.Trainable):
    """A class that says itself when it has ended, after three steps, and can be used for another trial."""

    def setup(self, config: dict[str, Any]) -> None:
        self._x, self._epoch = config["x"], 0

    def step(self) -> dict[str, Any]:
        self._epoch += 1
        return {"loss": loss_after(self._epoch, self._x), "done": self._epoch == 3}

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.setup(new_config)
        return True

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        Path(checkpoint_dir, "epoch.json").write_text(json.dumps(self._epoch))

    def load_checkpoint(self, checkpoint: dict[str, Any] | str | None) -> None:
        self._epoch = json.loads(Path(str(checkpoint), "epoch.json").read_text())


class InterruptAtReport(tune.Callback):
    """Presses Ctrl-C when the given report of the program comes."""

    def __init__(self, report: int) -> None:
        self._left = report

    def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Any, **info: Any) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGINT)

    def __reduce__(self) -> tuple[Any, ...]:
        return InterruptAtReport, (0,)  # a restored program is not interrupted again


class StopAllAtReport(tune.Stopper):
    """Cuts the whole program short after some reports, as a time budget does."""

    def __init__(self, reports: int) -> None:
        self._left = reports

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        self._left -= 1
        return False

    def stop_all(self) -> bool:
        return self._left <= 0
