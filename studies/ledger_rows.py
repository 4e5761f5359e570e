"""The rows of the checkpoint ledger. Each function runs in the caller's transaction."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from sqlalchemy import Connection, delete, select

from studies.joint_writes import Row
from studies.schema import optuna_tables as optuna
from studies.schema.tables import automl_checkpoints
from studies.trial import CheckpointRecord, Lease

__all__ = [
    "check_checkpoint_path",
    "checkpoint_row",
    "delete_checkpoints",
    "read_checkpoints",
    "trials_with_checkpoints",
]

_LONGEST_PATH = 512


def check_checkpoint_path(path: str) -> None:
    """Refuse a path that would not survive a move of the artifacts root.

    Raises:
        ValueError: the path is absolute, leaves the root, or is too long.
    """
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\\" in path or len(path) > _LONGEST_PATH:
        raise ValueError(
            f"checkpoint path {path!r} is not a POSIX path of at most {_LONGEST_PATH} characters below the artifacts"
            " root; give it relative to that root"
        )


def checkpoint_row(lease: Lease, record: CheckpointRecord) -> Row:
    """A checkpoint in the ledger; a file that was written again takes the place of its row."""
    values = {
        "path": record.path,
        "epoch": record.epoch,
        "attempt": lease.attempt,
        "digest": record.digest,
        "size_bytes": record.size_bytes,
    }
    return Row(automl_checkpoints, ("path",), values)


def read_checkpoints(connection: Connection, trial_id: int) -> tuple[CheckpointRecord, ...]:
    """Read a trial's checkpoints, the newest attempt's first, and of one attempt the one with most epochs first."""
    table = automl_checkpoints.c
    query = (
        select(automl_checkpoints)
        .where(table.trial_id == trial_id)
        .order_by(table.attempt.desc(), table.epoch.desc(), table.path)
    )
    return tuple(
        CheckpointRecord(
            path=row.path, epoch=row.epoch, attempt=row.attempt, digest=row.digest, size_bytes=row.size_bytes
        )
        for row in connection.execute(query)
    )


def trials_with_checkpoints(connection: Connection, study_id: int) -> frozenset[int]:
    """The keys of a study's trials that have checkpoints."""
    trials = optuna.trials
    query = (
        select(automl_checkpoints.c.trial_id)
        .distinct()
        .join_from(automl_checkpoints, trials, trials.c.trial_id == automl_checkpoints.c.trial_id)
        .where(trials.c.study_id == study_id)
    )
    return frozenset(connection.scalars(query))


def delete_checkpoints(connection: Connection, trial_id: int, paths: Sequence[str]) -> None:
    """Take checkpoints out of the ledger."""
    table = automl_checkpoints
    connection.execute(delete(table).where(table.c.trial_id == trial_id, table.c.path.in_(paths)))
