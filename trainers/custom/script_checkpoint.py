"""What a script goes on from: a file of its own, behind a line of JSON with all that we know of it."""

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainers.artifact_files import local_copy, write_file
from trainers.config import TrainTask
from trainers.custom.course import Course, origin_of
from trainers.errors import BadDataError, DamagedCheckpointError, UserCodeError
from trainers.reporting import CheckpointFile

__all__ = ["keep", "resumed"]


@contextmanager
def resumed(task: TrainTask, course: Course, fingerprint: str) -> Iterator[Path | None]:
    """Hold the file that the script goes on from, and tell the course where it stands; None: it starts anew.

    Args:
        task: says from which checkpoint.
        course: of a training that has not begun.
        fingerprint: of the source.

    Raises:
        DamagedCheckpointError: the checkpoint cannot be read, or is of another trial.
        BadDataError: the source has changed since it was written.
    """
    if task.resume_from is None:
        yield None
        return
    with (
        local_copy(f"{task.artifacts_root}/{task.resume_from}") as file,
        tempfile.TemporaryDirectory(prefix="automl-script-") as folder,
    ):
        try:
            start = _unpacked(file, Path(folder), task, course, fingerprint)
        except BadDataError:
            raise
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DamagedCheckpointError(f"checkpoint {task.resume_from} cannot be read: {error}") from error
        yield start


def keep(folder: Path, name: object, task: TrainTask, course: Course, fingerprint: str) -> CheckpointFile:
    """Write the file that the script names below the artifacts, with what is needed to go on.

    Args:
        folder: where the script leaves its files; this one is removed.
        name: what the script calls it.
        task: is trained.
        course: where the training stands.
        fingerprint: of the source.

    Raises:
        UserCodeError: there is no such file.
    """
    file = folder / str(name)
    if not isinstance(name, str) or file.resolve().parent != folder.resolve() or not file.is_file():
        raise UserCodeError(
            f"the script names the checkpoint {name!r}, which is no file in the folder AUTOML_CHECKPOINT_DIR; "
            "write it there before the line is printed, each under a new name"
        )
    head = json.dumps(
        {
            "epoch": course.epoch,
            "name": file.name,
            "best": course.best.state(),
            "seed": task.training.seed,
            "blueprint": origin_of(task, fingerprint),
        }
    )
    path = f"{task.checkpoint_dir.rstrip('/')}/epoch-{course.epoch:04d}.ckpt"
    with file.open("rb") as own:

        def write(packed: Any) -> None:
            packed.write(f"{head}\n".encode())
            shutil.copyfileobj(own, packed)

        facts = write_file(f"{task.artifacts_root}/{path}", write)
    file.unlink()
    return CheckpointFile(path=path, epoch=course.epoch, digest=facts.digest, size_bytes=facts.size_bytes)


def _unpacked(file: Path, folder: Path, task: TrainTask, course: Course, fingerprint: str) -> Path:
    with file.open("rb") as packed:
        head = json.loads(packed.readline())
        _check_belongs(head, task, fingerprint)
        course.resume(head["epoch"], head["best"])
        start = folder / Path(head["name"]).name
        with start.open("wb") as own:
            shutil.copyfileobj(packed, own)
    return start


def _check_belongs(head: Mapping[str, Any], task: TrainTask, fingerprint: str) -> None:
    """Refuse to go on with what another trial, or other data, have left."""
    from trainers.checkpoint import Checkpoint
    from trainers.fitting import check_belongs

    if "blueprint" not in head:
        return  # of a release that did not write whose it is
    own = {name: head[name] for name in ("epoch", "seed", "best", "blueprint")}
    check_belongs(Checkpoint(network={}, optimization={}, metrics={}, **own), task, fingerprint)
