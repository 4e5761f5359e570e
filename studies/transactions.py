"""One transaction per call: begun, and repeated while the database is only busy; the one place that repeats work."""

import logging
import math
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import TypeVar

from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DisconnectionError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from studies.troubles import Trouble, first_line, in_words, may_be_committed, trouble_of

__all__ = ["WRITERS", "Transactions", "ping_rested_connections"]

WRITERS = 3
"""Threads of one process that may write to a server at the same time: fewer locked rows hold up their trials alone."""

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")

_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 2.0
_HURRIED_S = 2.0
_QUIET_S = 30.0
"""Trouble that comes again within this time is the same trouble; longer than the waits for locks and connections."""
_REST_S = 5.0
"""A connection that was used within this time is taken for alive."""


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
        self.writers = 1 if self._is_sqlite else WRITERS  # a SQLite file takes one writer at a time anyway
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
                self._complaints.say(f"database is {trouble.value}, trying again: {first_line(error)}")
                first = first and not may_be_committed(error, trouble)
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
