"""One transaction per call: begun, repeated while the database is only busy, and its errors put into words.

This is the one place that repeats work and the one place that turns a driver's error into a `StorageError`.
"""

import logging
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from enum import Enum
from typing import TypeVar

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from studies.errors import StorageError, StorageFullError

__all__ = ["Transactions", "Trouble", "begin_sqlite_transactions", "in_words", "trouble_of"]

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")

_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 2.0
_BEGIN = "automl_begin"
"""Name of the execution option that holds the statement which begins a transaction on SQLite; empty: none."""
_SQLITE_BUSY_LOCKED = (5, 6)
_SQLITE_FULL = 13
_POSTGRESQL_DISK_FULL = "53100"
_POSTGRESQL_PASSING = ("40001", "40P01", "55P03", "53300", "57P01", "57P02", "57P03")
"""Serialisation, deadlock, lock wait, too many clients, shutdown, crash, starting up; see PostgreSQL, appendix A."""
_PASSING_TEXTS = ("too many clients", "connection slots are reserved", "starting up", "shutting down")
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
        self.shown = shown
        self.patience_s = patience_s
        self._jitter = random.Random()  # spreads the retries of many processes

    def read(self, work: Callable[[Connection], _Result]) -> _Result:
        """Run a function that only reads; on SQLite it never waits for a writer."""
        return self._repeated(lambda first: self._once(work, "BEGIN"))

    def write(self, work: Callable[[Connection], _Result], *, patience_s: float | None = None) -> _Result:
        """Run a function that writes; its transaction takes SQLite's write lock at once, so that it never deadlocks."""
        return self._repeated(lambda first: self._once(work, "BEGIN IMMEDIATE"), patience_s)

    def write_knowing(self, work: Callable[[Connection, bool], _Result]) -> _Result:
        """Like `write`, for a function that must know whether it is the first try.

        When the connection breaks during the commit nobody knows whether it took place.
        """
        return self._repeated(lambda first: self._once(lambda c: work(c, first), "BEGIN IMMEDIATE"))

    def outside(self, work: Callable[[Connection], _Result]) -> _Result:
        """Run a function outside of any transaction, as SQLite wants it for its settings."""
        return self._repeated(lambda first: self._once(work, ""))

    def settle(self) -> None:
        """Bring what SQLite has committed to its log into the main file; nothing to do for a server.

        After that a copy of the main file alone is whole, also when every process was killed. It never waits: a part
        of the log that somebody still reads is left to the next call.
        """
        if self.engine.dialect.name != "sqlite":
            return
        try:
            with closing(self.engine.raw_connection()) as connection:
                connection.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)")
        except (sqlite3.Error, SQLAlchemyError) as error:
            # What was written is safe in the log, so that the caller's work has not failed.
            _log.warning("%s: the database's log stays beside its file for now: %s", self.shown, error)

    def first_contact(self) -> None:
        """Connect once.

        Raises:
            StorageError: at once when the address is wrong; a server that is only busy is asked again.
        """
        self._repeated(lambda first: self._once(lambda c: None, "BEGIN"), repeat=(Trouble.PASSING,))

    def _once(self, work: Callable[[Connection], _Result], begin: str) -> _Result:
        with self.engine.connect() as connection:
            with connection.execution_options(**{_BEGIN: begin}).begin():
                return work(connection)

    def _repeated(
        self,
        run: Callable[[bool], _Result],
        patience_s: float | None = None,
        repeat: tuple[Trouble, ...] = (Trouble.PASSING, Trouble.UNREACHABLE),
    ) -> _Result:
        deadline = time.monotonic() + (self.patience_s if patience_s is None else patience_s)
        pause_s, first = _FIRST_PAUSE_S, True
        while True:
            try:
                return run(first)
            except SQLAlchemyError as error:
                trouble = trouble_of(error)
                if trouble not in repeat or time.monotonic() >= deadline:
                    raise in_words(error, self.shown) from error
                if first:
                    _log.warning("database is %s, trying again: %s", trouble.value, _first_line(error))
            first = False
            time.sleep(pause_s * self._jitter.uniform(0.5, 1.0))
            pause_s = min(2.0 * pause_s, _LONGEST_PAUSE_S)


def begin_sqlite_transactions(engine: Engine) -> None:
    """Let SQLAlchemy, not the driver, begin SQLite's transactions, and writers take the write lock at once.

    A transaction that reads first and writes later fails with "database is locked" when another one wrote in between;
    no timeout helps against that, only BEGIN IMMEDIATE.
    """

    def begin(connection: Connection) -> None:
        statement = connection.get_execution_options().get(_BEGIN, "BEGIN")
        if statement:
            connection.exec_driver_sql(statement)

    event.listen(engine, "begin", begin)


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
    return _postgresql_trouble(error, getattr(error.orig, "sqlstate", None))


def in_words(error: SQLAlchemyError, shown: str) -> StorageError:
    """Put a driver's error into one line that says where it happened and what to do."""
    trouble, line = trouble_of(error), _first_line(error)
    match trouble:
        case Trouble.FULL:
            return StorageFullError(f"{shown}: the disk is full ({line}); free some space and go on")
        case Trouble.PASSING:
            return StorageError(f"{shown}: the database stayed busy ({line}); see which process holds it and try again")
        case Trouble.UNREACHABLE:
            return StorageError(f"{shown}: cannot connect ({line}); {_advice(line)}")
        case Trouble.LASTING:
            return StorageError(f"{shown}: {line}; {_advice(line)}")


def _postgresql_trouble(error: DBAPIError, code: str | None) -> Trouble:
    text = str(error.orig)
    if code == _POSTGRESQL_DISK_FULL:
        return Trouble.FULL
    if code in _POSTGRESQL_PASSING or any(part in text for part in _PASSING_TEXTS):
        return Trouble.PASSING
    lost = error.connection_invalidated or (code or "").startswith("08")
    connecting = isinstance(error, OperationalError) and code is None
    return Trouble.UNREACHABLE if lost or connecting else Trouble.LASTING


def _first_line(error: SQLAlchemyError) -> str:
    # Only the driver's own text: SQLAlchemy adds the statement and its values, which may be long or private.
    text = str(error.orig if isinstance(error, DBAPIError) else error).strip()
    line = " ".join(text.splitlines()[:1]) or type(error).__name__
    return line.rstrip(".")


_ADVICE = {
    "password authentication failed": "check the user and the password",
    "no password supplied": "write the password into the address, or into ~/.pgpass",
    "does not exist": "check the name, or create it with `createdb`",
    "Connection refused": "check host and port, and that the server runs",
    "resolve": "check the name of the host",
    "not a database": "give another file: this one is not a SQLite database",
    "readonly": "check the permissions of the file and its folder",
    "unable to open": "check the permissions of the file and its folder",
    "permission denied": "ask the owner of the database for the right to create tables",
}


def _advice(line: str) -> str:
    for part, advice in _ADVICE.items():
        if part.lower() in line.lower():
            return advice
    return "check the address and the state of the database"
