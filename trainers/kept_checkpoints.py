"""The checkpoints of one training in a folder: the best and the last are kept."""

from pathlib import Path
from typing import Any

from trainers.config import TrainConfig
from trainers.early_stopping import BestEpoch
from trainers.errors import DamagedCheckpointError
from trainers.reporting import CheckpointFile, Report

__all__ = ["KeptCheckpoints", "UsedFolderError"]

FOLDER = "checkpoints"


class UsedFolderError(ValueError):
    """A folder holds the checkpoints of another training."""


class KeptCheckpoints:
    """Follows a training and removes the checkpoints that are neither its best nor its last.

    Args:
        root: folder of the training; made when the first checkpoint is written.
        training: names the objective.

    Attributes:
        root: that folder.
        folder: where in it the checkpoints lie.
    """

    def __init__(self, root: Path, training: TrainConfig) -> None:
        self.root = root
        self.folder = FOLDER
        self._metric = training.metric
        self._history = BestEpoch(direction=training.direction)
        self._files: dict[int, str] = {}
        self._best_metrics: dict[str, float] = {}

    @property
    def best(self) -> str:
        """Path of the best epoch's checkpoint, relative to the root."""
        return self._files[self._history.epoch]

    @property
    def last(self) -> str:
        """Path of the last epoch's checkpoint, relative to the root."""
        return self._files[self._history.last_epoch]

    def best_metrics(self) -> dict[str, float]:
        """Return what was measured in the best epoch."""
        return dict(self._best_metrics)

    def check_empty(self) -> None:
        """Refuse a folder with checkpoints.

        Raises:
            UsedFolderError: there are some.
        """
        if found := self._found():
            raise UsedFolderError(
                f"{self.root} holds {len(found)} checkpoints of an earlier training; go on with it (--resume), or "
                "give another folder"
            )

    def newest(self) -> str | None:
        """Return the newest checkpoint that can be read, and take up the history in it; None: there is none.

        Raises:
            DamagedCheckpointError: there are some, and none can be read.
        """
        from trainers.checkpoint import read_checkpoint

        found, damage = self._found(), None
        for path in reversed(found):
            try:
                checkpoint = read_checkpoint(path)
            except DamagedCheckpointError as error:
                damage = error
                continue
            self._history = self._history.restored(checkpoint.best)
            self._files = {_epoch_of(path): f"{FOLDER}/{path.name}" for path in found}
            self._best_metrics = self._metrics_of_best(checkpoint)
            return f"{FOLDER}/{path.name}"
        if damage is not None:
            raise damage
        return None

    def add(self, report: Report) -> None:
        """Take in a report, and remove what is no longer wanted."""
        from trainers.checkpoint import remove_checkpoint

        assert isinstance(report.checkpoint, CheckpointFile)
        self._history = self._history.after(report.epoch, report.metrics[self._metric])
        self._files[report.epoch] = report.checkpoint.path
        if self._history.epoch == report.epoch:
            self._best_metrics = dict(report.metrics)
        for epoch in [epoch for epoch in self._files if epoch not in (self._history.epoch, report.epoch)]:
            remove_checkpoint(self.root / self._files.pop(epoch))

    def _metrics_of_best(self, last: Any) -> dict[str, float]:
        from trainers.checkpoint import read_checkpoint

        best = self._files.get(self._history.epoch)
        checkpoint = last if best is None or last.epoch == self._history.epoch else read_checkpoint(self.root / best)
        return dict(checkpoint.metrics)

    def _found(self) -> list[Path]:
        return sorted((self.root / FOLDER).glob("epoch-*.pt"))


def _epoch_of(path: Path) -> int:
    return int(path.stem.rpartition("-")[2])
