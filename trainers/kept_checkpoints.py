"""The checkpoints of one training in a folder: those of its best and its last epoch are kept, whatever trains.

A file beside them, `training.json`, is the record: which training it is, and which files are whole. It is written after
a checkpoint and before others are removed, so that a process that is killed leaves a record to go on from.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainers.artifact_files import facts_of, write_file
from trainers.config import TrainConfig
from trainers.early_stopping import BestEpoch
from trainers.errors import DamagedCheckpointError
from trainers.reporting import CheckpointFile, JsonValue, Report

__all__ = ["BUILT_WITH", "FOLDER", "KeptCheckpoints", "UsedFolderError"]

FOLDER = "checkpoints"
RECORD = "training.json"
BUILT_WITH = "built_with"
"""What an identity says besides, and is not compared: values that stand for those of its configuration."""
FORMAT = "automl training 1"

_log = logging.getLogger(__name__)


class UsedFolderError(ValueError):
    """A folder holds the checkpoints of another training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A checkpoint, the history of the objective up to it, and what the best epoch up to it has measured."""

    file: CheckpointFile
    history: BestEpoch
    best_metrics: Mapping[str, float]


class KeptCheckpoints:
    """Follows a training and removes the checkpoints that are neither its best nor its last.

    Args:
        root: folder of the training; made when the first checkpoint is written.
        training: names the objective.
        identity: tells this training from others: only the same one goes on here. What is `built_with` is only told.

    Attributes:
        epochs_before: of the whole training, as it was planned when its newest checkpoint was written; None: it starts
            anew, or nobody knows.
    """

    def __init__(self, root: Path, training: TrainConfig, identity: Mapping[str, JsonValue]) -> None:
        self._root, self._metric, self._identity = root, training.metric, dict(identity)
        self._epochs = training.epochs
        self.epochs_before: int | None = None
        self._history = BestEpoch(direction=training.direction)
        self._kept: dict[int, _Kept] = {}
        self._best_metrics: Mapping[str, float] = {}

    @staticmethod
    def check_unused(root: Path) -> None:
        """Refuse a folder with checkpoints.

        Raises:
            UsedFolderError: there are some.
        """
        if any(not path.name.startswith(".") for path in (root / FOLDER).glob("*")):
            raise UsedFolderError(
                f"{root} holds checkpoints of an earlier training; go on with it (--resume), or give another folder"
            )

    @property
    def best(self) -> str | None:
        """Path of the best epoch's checkpoint, relative to the root; None: that epoch has written none."""
        kept = self._kept.get(self._history.epoch)
        return None if kept is None else kept.file.path

    @property
    def last(self) -> str | None:
        """Path of the last checkpoint, relative to the root; None: there is none."""
        return self._kept[max(self._kept)].file.path if self._kept else None

    def best_metrics(self) -> dict[str, float]:
        """Return what was measured in the best epoch."""
        return dict(self._best_metrics)

    def newest(self) -> str | None:
        """Return the newest checkpoint that is whole, and take up the history in it; None: the training starts anew.

        Raises:
            UsedFolderError: the folder is of another training, or of another version.
            DamagedCheckpointError: there are checkpoints, and none is whole.
        """
        path = self._root / RECORD
        if not path.is_file():
            return None
        record = self._read(path)
        entries = sorted((_entry(entry, self._history) for entry in record["kept"]), key=lambda kept: kept.file.epoch)
        whole = [kept for kept in entries if self._is_whole(kept.file)]
        if not whole:
            if any((self._root / kept.file.path).exists() for kept in entries):
                raise DamagedCheckpointError(f"no checkpoint in {self._root / FOLDER} is whole; start anew elsewhere")
            return None
        self.epochs_before = record.get("epochs")
        self._history, self._best_metrics = whole[-1].history, whole[-1].best_metrics
        self._kept = {kept.file.epoch: kept for kept in whole}
        return whole[-1].file.path

    def add(self, report: Report) -> None:
        """Take in a report, and remove what is no longer wanted.

        Raises:
            OSError: the record cannot be written.
        """
        from trainers.checkpoint import remove_checkpoint

        self._history = self._history.after(report.epoch, report.metrics[self._metric])
        if self._history.epoch == report.epoch:
            self._best_metrics = dict(report.metrics)
        if report.checkpoint is not None:
            self._kept[report.epoch] = _Kept(
                file=report.checkpoint, history=self._history, best_metrics=self._best_metrics
            )
        self._write()
        for epoch in set(self._kept) - {self._history.epoch, max(self._kept, default=0)}:
            remove_checkpoint(self._root / self._kept.pop(epoch).file.path)

    def _write(self) -> None:
        record = {
            "format": FORMAT,
            "identity": self._identity,
            "epochs": self._epochs,
            "kept": [
                {"file": asdict(kept.file), "history": kept.history.state(), "best_metrics": kept.best_metrics}
                for kept in self._kept.values()
            ],
        }
        write_file(self._root / RECORD, lambda file: file.write(json.dumps(record, indent=1).encode()))

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            record: dict[str, Any] = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise UsedFolderError(f"{path} cannot be read: {error}; give another folder") from error
        if record.get("format") != FORMAT:
            raise UsedFolderError(f"{path} is no record of a training of this version; give another folder")
        theirs = record["identity"]
        if BUILT_WITH in self._identity and BUILT_WITH not in theirs:
            theirs = _as_asked_for(theirs, self._identity)
        if differing := list(dict.fromkeys(_differences(theirs, self._identity))):
            raise UsedFolderError(f"{self._root} is of another training; {'; '.join(differing)}; give another folder")
        return record

    def _is_whole(self, file: CheckpointFile) -> bool:
        from trainers.checkpoint import PARTS, combined_digest

        path = self._root / file.path
        if not path.is_file():
            return False
        parts = Path(f"{path}{PARTS}")
        digests = {part.name: facts_of(part).digest for part in parts.iterdir()} if parts.is_dir() else {}
        if combined_digest(facts_of(path).digest, digests) == file.digest:
            return True
        _log.warning("checkpoint %s is damaged, and left aside", path)
        return False


def _differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    """Say what differs, name by name, also within a configuration."""
    for name in dict.fromkeys([*ours, *theirs]):
        if name == BUILT_WITH:
            continue  # it follows from the space, which may know more by now
        there, now = theirs.get(name), ours.get(name)
        if isinstance(there, Mapping) and isinstance(now, Mapping):
            yield from _differences(there, now)
        elif there != now:
            yield f"{name}: there {there!r}, now {now!r}"


def _as_asked_for(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the identity in the record of an older release, with what was asked for in its configuration.

    There the configuration had what stood for a setting that the space does not know; that was in the settings.
    """
    settings, configuration = theirs["settings"], ours["configuration"]
    trained = [name for name in settings if name in configuration and configuration[name] == ours["settings"].get(name)]
    asked = {name: settings[name] for name in trained if name in theirs["configuration"]}
    return {**theirs, "configuration": {**theirs["configuration"], **asked}}


def _entry(entry: Mapping[str, Any], history: BestEpoch) -> _Kept:
    return _Kept(
        file=CheckpointFile(**entry["file"]),
        history=history.restored(entry["history"]),
        best_metrics=entry["best_metrics"],
    )
