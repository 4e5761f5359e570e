"""How a SQLite file is opened: to read and write it, or, where this process may not write, only to read it.

The system lets a process go on with a file that was removed, and loses all that is written to it; that is noticed here.

A reader without the right to write must leave nothing beside the file: a log or an index that belongs to him would lock
out the owner of the database.
"""

import os
import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Engine, event
from sqlalchemy.pool import ConnectionPoolEntry

from studies.errors import StorageError

__all__ = ["WatchedFile", "copy_beside", "forget_still_pictures", "open_sqlite_file"]

_COPY_PATIENCE_S = 30.0
_EFFECTIVE = os.access in os.supports_effective_ids


class _StillPicture(sqlite3.Connection):
    """A connection that takes the file for one that nobody changes."""


class WatchedFile:
    """A SQLite file that stays the same one from its first connection on.

    Args:
        file: absolute path.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._identity: tuple[int, int] | None = None
        self._was_gone = False

    @property
    def is_gone(self) -> bool:
        """Whether the file that was opened first was removed, or another one lies in its place; that stays so."""
        # The system may give the number of a removed file to a new one as soon as no connection holds the old one.
        if self._identity is not None and _identity(self._file) != self._identity:
            self._was_gone = True
        return self._was_gone

    def open(self, busy_timeout_s: float) -> sqlite3.Connection:
        """Connect as `open_sqlite_file` does; no other file is opened, or made, in place of the first one.

        Raises:
            StorageError: the file is gone.
        """
        self.check()
        connection = open_sqlite_file(self._file, busy_timeout_s)
        if self._identity is None:
            self._identity = _identity(self._file)
        return connection

    def check(self, *_event: object) -> None:
        """Look whether the file is still there; costs a microsecond. Also a listener for a pool's events.

        Raises:
            StorageError: the file is gone.
        """
        if self.is_gone:
            raise StorageError(
                f"the file {self._file} was removed or replaced while it was in use, and what is written now would be "
                "lost; restore it, or start anew"
            )


def open_sqlite_file(file: Path, busy_timeout_s: float) -> sqlite3.Connection:
    """Connect to a file, which comes into being when it is missing.

    Where this process may not write the file or its folder it is opened to be read: with its log when there is one,
    otherwise as a still picture, which needs no file beside it. Writing then fails with "readonly database".

    Args:
        file: absolute path.
        busy_timeout_s: how long a statement waits for a lock.

    Returns:
        A connection that a pool may hand from thread to thread.

    Raises:
        sqlite3.Error: the file cannot be opened.
    """
    options, factory = _options(file)
    return sqlite3.connect(
        f"file:{quote(os.fsencode(file))}{options}",
        uri=True,
        timeout=busy_timeout_s,
        check_same_thread=False,
        factory=factory,
    )


def forget_still_pictures(engine: Engine) -> None:
    """Let no pool keep a still picture beyond its transaction: the file's owner may write again at any time."""

    def checkin(connection: object, entry: ConnectionPoolEntry) -> None:
        if isinstance(connection, _StillPicture):
            entry.invalidate()

    event.listen(engine, "checkin", checkin)


def copy_beside(file: Path) -> Path:
    """Copy a database beside itself, with what is still in its log; no file is ever overwritten.

    Args:
        file: absolute path of a database, such as `studies.db`.

    Returns:
        The copy: `studies.db.0001.bak`, or the next number that is free.

    Raises:
        OSError: the copy cannot be written.
        sqlite3.Error: the database cannot be read.
    """
    for number in count(1):
        copy = file.with_name(f"{file.name}.{number:04d}.bak")
        try:
            copy.touch(mode=file.stat().st_mode & 0o777, exist_ok=False)
        except FileExistsError:
            continue
        break
    try:
        with closing(open_sqlite_file(file, _COPY_PATIENCE_S)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode=DELETE")  # so that the copy is one file
    except BaseException:
        copy.unlink()
        raise
    return copy


def _options(file: Path) -> tuple[str, type[sqlite3.Connection]]:
    if not file.exists() or (_may_write(file) and _may_write(file.parent)):
        return "", sqlite3.Connection
    if _size(file.with_name(f"{file.name}-wal")) > 0:
        return "?mode=ro", sqlite3.Connection
    return "?mode=ro&immutable=1", _StillPicture


def _identity(file: Path) -> tuple[int, int] | None:
    """What tells a file from another one of the same name; None when there is none."""
    try:
        facts = file.stat()
    except FileNotFoundError:
        return None
    return facts.st_dev, facts.st_ino


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=_EFFECTIVE)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
