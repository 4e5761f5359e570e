"""One transaction per call: begun, repeated while the database is only busy, and its errors put into words.

This is the one place that repeats work and the one place that turns a driver's error into a `StorageError`.
"""

import logging
import math
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from enum import Enum
from typing import TypeVar

from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, DisconnectionError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import ConnectionPoolEntry

from studies.errors import StorageAwayError, StorageError, StorageFullError

__all__ = [
    "Transactions",
    "Trouble",
    "in_words",
    "ping_rested_connections",
    "trouble_of",
]

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")

_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 2.0
_HURRIED_S = 2.0
_QUIET_S = 30.0
"""Trouble that comes again within this time is the same trouble; longer than the waits for locks and connections."""
_REST_S = 5.0
"""A connection that was used within this time is taken for alive."""
_SQLITE_BUSY_LOCKED = (5, 6)
_SQLITE_FULL = 13
_POSTGRESQL_DISK_FULL = "53100"
_POSTGRESQL_PASSING = ("25P03", "40001", "40P01", "55P03", "53300", "57P01", "57P02", "57P03")
"""Idle for too long, serialisation, deadlock, lock wait, too many clients, shutdown, crash, starting up; see
PostgreSQL, appendix A."""
_MYSQL_PASSING = (1020, 1040, 1053, 1203, 1205, 1213, 1226)
"""Changed meanwhile, too many clients, shutdown, too many of a user (2), lock wait, deadlock; see MySQL's reference."""
_MYSQL_LOST = (0, 1152, 1158, 1159, 1160, 1161, 1927, 2002, 2003, 2006, 2013, 2055)
"""Broken network, killed connection, no answer; 0 is the driver's word for a connection that is closed already."""
_MYSQL_FULL = (1021, 1114)
_PASSING_TEXTS = (
    "too many clients",
    "too many connections",
    "connection slots are reserved",
    "starting up",
    "shutting down",
)
"""An error at connecting carries no code, only text."""


class Trouble(Enum):
    """What a failed statement says about the database."""

    PASSING = "busy"
    """Busy: the same transaction works later."""
    UNREACHABLE = "unreachable"
    """The connection broke, or none could be made."""
    FULL = "full"
    """The disk is full."""
    LASTING = "lasting"
    """Repeating does not help."""


class Transactions:
    """Runs functions of a connection, each in one transaction.

    A function may run several times, because a transaction that met a lock is repeated as a whole; it keeps no state
    outside the database, and sees `first` False when an earlier run may have been committed without its answer.

    Args:
        engine: makes the connections.
        shown: the database's address for people.
        patience_s: how long a busy or unreachable database is asked again.
    """

    def __init__(self, engine: Engine, shown: str, patience_s: float = 120.0) -> None:
        self.engine = engine
        self._is_sqlite = engine.dialect.name == "sqlite"
        # PostgreSQL gives each statement its own picture anyway, and a transaction costs two more trips to it. So its
        # connections commit by themselves, and those that are to write in several statements are set otherwise.
        commits_itself = engine.dialect.name == "postgresql"
        self._writing = engine.execution_options(isolation_level="READ COMMITTED") if commits_itself else engine
        self.shown = shown
        self.patience_s = patience_s
        self._jitter = random.Random()  # spreads the retries of many processes
        self._complaints = _Complaints()

    def read(self, work: Callable[[Connection], _Result]) -> _Result:
        """Run a function that only reads; on SQLite it never waits for a writer, and sees one moment of the database.

        A server shows to each statement what was committed before it.
        """
        return self._repeated(lambda first: self._read_once(work))

    def write(self, work: Callable[[Connection], _Result], *, patience_s: float | None = None) -> _Result:
        """Run a function that writes; its transaction takes SQLite's write lock at once, so that it never deadlocks."""
        return self._repeated(lambda first: self._once(work, "BEGIN IMMEDIATE"), patience_s)

    def write_knowing(self, work: Callable[[Connection, bool], _Result], *, patience_s: float | None = None) -> _Result:
        """Like `write`, for a function that must know whether an earlier try may have been committed.

        When the connection breaks during the commit nobody knows whether it took place.
        """
        return self._repeated(lambda first: self._once(lambda c: work(c, first), "BEGIN IMMEDIATE"), patience_s)

    def write_together(
        self, work: Callable[[Connection, bool], _Result], *, patience_s: float | None = None
    ) -> _Result:
        """Like `write_knowing`, for a function that writes by one call of `joint_writes.write_while_held`, and reads.

        PostgreSQL does that in one statement, which is a transaction of its own and needs none around it.
        """
        return self._repeated(lambda first: self._write_together_once(lambda c: work(c, first)), patience_s)

    def outside(self, work: Callable[[Connection], _Result]) -> _Result:
        """Run a function outside of any transaction, as SQLite wants it for its settings."""
        return self._repeated(lambda first: self._once(work, ""))

    def settle(self) -> None:
        """Bring what SQLite has committed to its log into the main file; nothing to do for a server.

        After that a copy of the main file alone is whole, also when every process was killed. It never waits: a part
        of the log that somebody still reads is left to the next call.
        """
        if not self._is_sqlite:
            return
        try:
            with closing(self.engine.raw_connection()) as connection:
                connection.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)")
        except (sqlite3.Error, SQLAlchemyError) as error:
            # What was written is safe in the log, so that the caller's work has not failed.
            _log.warning("%s: the database's log stays beside its file for now: %s", self.shown, error)

    def hurry(self) -> None:
        """Wait no longer than a few seconds from now on, as somebody wants this process to end."""
        self.patience_s = min(self.patience_s, _HURRIED_S)

    def first_contact(self) -> None:
        """Connect once.

        Raises:
            StorageError: at once when the address is wrong; a server that is only busy is asked again.
        """
        self._repeated(lambda first: self._once(lambda c: None, "BEGIN"), repeat=(Trouble.PASSING,))

    def _once(self, work: Callable[[Connection], _Result], begin: str) -> _Result:
        with self._writing.connect() as connection, connection.begin():
            self._begin(connection, begin)
            return work(connection)

    def _write_together_once(self, work: Callable[[Connection], _Result]) -> _Result:
        if self.engine.dialect.name != "postgresql":
            return self._once(work, "BEGIN IMMEDIATE")
        with self.engine.connect() as connection, connection.begin():
            return work(connection)

    def _read_once(self, work: Callable[[Connection], _Result]) -> _Result:
        with self.engine.connect() as connection:
            self._begin(connection, "BEGIN")
            return work(connection)

    def _begin(self, connection: Connection, statement: str) -> None:
        # SQLite's driver begins nothing by itself. A transaction that reads first and writes later fails with "database
        # is locked" when another one wrote in between; no timeout helps against that, only BEGIN IMMEDIATE.
        if self._is_sqlite and statement:
            connection.exec_driver_sql(statement)

    def _patience(self, wanted_s: float | None) -> float:
        # Asked anew at each failure: `hurry` is meant for calls that wait already.
        return self.patience_s if wanted_s is None else min(wanted_s, self.patience_s)

    def _repeated(
        self,
        run: Callable[[bool], _Result],
        patience_s: float | None = None,
        repeat: tuple[Trouble, ...] = (Trouble.PASSING, Trouble.UNREACHABLE),
    ) -> _Result:
        began = time.monotonic()
        pause_s, first = _FIRST_PAUSE_S, True  # until nobody knows what became of a commit
        while True:
            try:
                return run(first)
            except SQLAlchemyError as error:
                trouble = trouble_of(error)
                if trouble not in repeat or time.monotonic() - began >= self._patience(patience_s):
                    raise in_words(error, self.shown) from error
                self._complaints.say(f"database is {trouble.value}, trying again: {_first_line(error)}")
                first = first and not _may_be_committed(error, trouble)
            time.sleep(pause_s * self._jitter.uniform(0.5, 1.0))
            pause_s = min(2.0 * pause_s, _LONGEST_PAUSE_S)


class _Complaints:
    """Says once that there is trouble, however many calls of however many threads meet it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_at = -math.inf

    def say(self, message: str) -> None:
        with self._lock:
            is_new = time.monotonic() - self._last_at > _QUIET_S
            self._last_at = time.monotonic()
        if is_new:
            _log.warning("%s", message)


def ping_rested_connections(engine: Engine) -> None:
    """Let the pool of a server's connections try one that has rested before it is used, and make a new one if need be.

    The server, or something between it and here, may have closed it; in steady work no question is asked.
    """

    def checkin(connection: object, entry: ConnectionPoolEntry) -> None:
        entry.info["rests_since"] = time.monotonic()

    def checkout(connection: DBAPIConnection, entry: ConnectionPoolEntry, proxy: object) -> None:
        rests_since = entry.info.get("rests_since")
        if rests_since is None or time.monotonic() - rests_since < _REST_S:
            return
        try:
            is_alive = engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            raise DisconnectionError(f"the connection has gone: {error}") from error
        if not is_alive:
            raise DisconnectionError("the connection has gone")

    event.listen(engine, "checkin", checkin)
    event.listen(engine, "checkout", checkout)


def trouble_of(error: SQLAlchemyError) -> Trouble:
    """Classify an error by the driver's own code."""
    if isinstance(error, PoolTimeoutError):
        return Trouble.PASSING
    if not isinstance(error, DBAPIError) or error.orig is None:
        return Trouble.LASTING
    sqlite_code = getattr(error.orig, "sqlite_errorcode", None)
    if sqlite_code is not None:
        primary = sqlite_code & 0xFF  # the higher bits only refine it
        return {_SQLITE_FULL: Trouble.FULL}.get(
            primary, Trouble.PASSING if primary in _SQLITE_BUSY_LOCKED else Trouble.LASTING
        )
    match error.orig.args:
        case [int(code), *_]:
            return _mysql_trouble(error, code)
        case _:
            return _postgresql_trouble(error, getattr(error.orig, "sqlstate", None))


def in_words(error: SQLAlchemyError, shown: str) -> StorageError:
    """Put a driver's error into one line that says where it happened and what to do."""
    trouble, line = trouble_of(error), _first_line(error)
    match trouble:
        case Trouble.FULL:
            return StorageFullError(f"{shown}: the disk is full ({line}); free some space and go on")
        case Trouble.PASSING:
            return StorageAwayError(
                f"{shown}: the database stayed busy ({line}); see which process holds it and try again"
            )
        case Trouble.UNREACHABLE:
            return StorageAwayError(f"{shown}: cannot connect ({line}); {_advice(line)}")
        case Trouble.LASTING:
            return StorageError(f"{shown}: {line}; {_advice(line)}")


def _may_be_committed(error: SQLAlchemyError, trouble: Trouble) -> bool:
    """Whether the transaction may have taken place all the same: the connection broke, perhaps before the answer came.

    Of a lock or a deadlock the database itself says that it has undone everything.
    """
    return trouble is Trouble.UNREACHABLE or (isinstance(error, DBAPIError) and error.connection_invalidated)


def _postgresql_trouble(error: DBAPIError, code: str | None) -> Trouble:
    text = str(error.orig)
    if code == _POSTGRESQL_DISK_FULL:
        return Trouble.FULL
    if code in _POSTGRESQL_PASSING or any(part in text for part in _PASSING_TEXTS):
        return Trouble.PASSING
    lost = error.connection_invalidated or (code or "").startswith("08")
    connecting = isinstance(error, OperationalError) and code is None
    return Trouble.UNREACHABLE if lost or connecting else Trouble.LASTING


def _mysql_trouble(error: DBAPIError, code: int) -> Trouble:
    if code in _MYSQL_FULL:
        return Trouble.FULL
    if code in _MYSQL_PASSING:
        return Trouble.PASSING
    return Trouble.UNREACHABLE if code in _MYSQL_LOST or error.connection_invalidated else Trouble.LASTING


def _first_line(error: SQLAlchemyError) -> str:
    # Only the driver's own text: SQLAlchemy adds the statement and its values, which may be long or private.
    cause = error.orig if isinstance(error, DBAPIError) else error
    match getattr(cause, "args", ()):
        case [int(), str(text), *_]:  # MySQL's code and its words
            pass
        case _:
            text = str(cause)
    text = text.strip()
    line = " ".join(text.splitlines()[:1]) or type(error).__name__
    return line.rstrip(".")


_ADVICE = {
    "password authentication failed": "check the user and the password",
    "Access denied for user": "check the user, the password and the user's rights",
    "Unknown database": "check the name, or create it with `CREATE DATABASE`",
    "command denied": "ask the owner of the database for the right to create and change tables",
    "no password supplied": "write the password into the address, or into ~/.pgpass",
    'role "': "check the user",
    'database "': "check the name, or create it with `createdb`",
    "Connection refused": "check host and port, and that the server runs",
    "resolve": "check the name of the host",
    "service not known": "check the name of the host",
    "not a database": "give another file: this one is not a SQLite database",
    "readonly": "check the permissions of the file and its folder",
    "unable to open": "check the permissions of the file and its folder",
    "permission denied": "ask the owner of the database for the right to create and change tables",
}


def _advice(line: str) -> str:
    for part, advice in _ADVICE.items():
        if part.lower() in line.lower():
            return advice
    return "check the address and the state of the database"
