"""SQLAlchemy's engines: one for each address in a process, so that a process holds few connections."""

import os
import threading
from functools import partial
from typing import Any

from sqlalchemy import Dialect, Engine, NullPool, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection

from studies.database_url import DatabaseAddress, DatabaseKind
from studies.errors import StorageError
from studies.sqlite_file import WatchedFile, forget_still_pictures, open_sqlite_file
from studies.transactions import WRITERS, ping_rested_connections

__all__ = ["SharedEngine", "optuna_arguments"]

_BUSY_TIMEOUT_S = 5.0
_CONNECT_TIMEOUT_S = 10
_IDLE_TIMEOUT_S = 15
"""A process that was stopped within a transaction, or whose machine has vanished, holds its locks no longer."""
_MYSQL_REST_S = 60
"""The same for MySQL, which then closes connections that merely rest, too."""
_SILENCE_S = 30
"""A server that has not answered at all for so long is not there any more."""
_LOCK_TIMEOUT_S = 10
"""A lock is waited for in steps, so that a long wait is seen in the log."""
_CONNECTIONS = 3 + WRITERS
"""Most per process and database: one for the work, one for the thread that renews leases, those of the writers, and one
that the threads which look after files share. A connection is opened only when all that are open are busy."""
_EXTRAS: dict[DatabaseKind, str] = {"postgresql": "postgres", "mysql": "mysql"}


class SharedEngine:
    """The engine of an address; objects of one process with one address have it in common.

    A SQLite file that was removed or replaced meanwhile gets an engine of its own; the old one's users are told.

    Args:
        address: the database.

    Raises:
        StorageError: the driver is missing.
    """

    def __init__(self, address: DatabaseAddress) -> None:
        key = address.url.render_as_string(hide_password=False)
        with _LOCK:
            known = next((one for one in _ENGINES if one.key == key and not one.is_gone), None)
            if known is None:
                known = _Counted(key, address)
                _ENGINES.append(known)
            known.users += 1
            self._counted = known
            self.engine = known.engine

    def release(self) -> None:
        """Give it back; the last user closes its connections. Once for each object."""
        with _LOCK:
            self._counted.users -= 1
            if self._counted.users == 0:
                _ENGINES.remove(self._counted)
                self.engine.dispose()


def optuna_arguments(address: DatabaseAddress) -> dict[str, Any]:
    """How Optuna is to make an engine of its own, as `engine_kwargs`: it keeps no connection open."""
    return {"poolclass": NullPool, **_connecting(address)}


class _Counted:
    def __init__(self, key: str, address: DatabaseAddress) -> None:
        self.key = key
        self._file = None if address.file is None else WatchedFile(address.file)
        self.engine = _new_engine(address, self._file)
        self.users = 0

    @property
    def is_gone(self) -> bool:
        return self._file is not None and self._file.is_gone


_ENGINES: list[_Counted] = []
_LOCK = threading.RLock()
_PARENTS: list[object] = []


def _leave_connections_to_parent() -> None:
    # A forked child must neither use nor close the connections that its parent goes on using; what is thrown away
    # would be closed, so that it is kept.
    for counted in _ENGINES:
        _PARENTS.append(counted.engine.pool)
        counted.engine.dispose(close=False)


os.register_at_fork(after_in_child=_leave_connections_to_parent)


def _new_engine(address: DatabaseAddress, file: WatchedFile | None) -> Engine:
    arguments: dict[str, Any] = (
        _connecting(address) if file is None else {"creator": partial(file.open, _BUSY_TIMEOUT_S)}
    )
    if address.kind == "postgresql":
        # A statement is a transaction, unless `Transactions` says otherwise.
        arguments["isolation_level"] = "AUTOCOMMIT"
    try:
        engine = create_engine(
            address.url,
            **arguments,
            pool_size=_CONNECTIONS,
            max_overflow=0,
            pool_use_lifo=True,
        )
    except ImportError as error:  # of the driver, or of the C library below it
        raise StorageError(
            f"{address.shown}: the driver cannot be imported ({str(error).splitlines()[0]}); run: pip install"
            f" 'automl[{_EXTRAS[address.kind]}]'"
        ) from error
    if file is not None:
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "checkout", file.check)
        forget_still_pictures(engine)
    else:
        ping_rested_connections(engine)
        # Many rows go into one statement, not into one statement each.
        engine.dialect.use_insertmanyvalues_wo_returning = engine.dialect.use_insertmanyvalues
    if address.kind == "mysql":
        event.listen(engine, "do_connect", partial(_connect_to_mysql, address.shown))
    return engine


def _connect_to_mysql(shown: str, dialect: Dialect, record: object, args: Any, options: Any) -> DBAPIConnection:
    try:
        return dialect.connect(*args, **options)
    except (TypeError, ValueError, AttributeError, RuntimeError) as error:
        # So the driver says that it does not know an option, or lacks the package for the server's kind of login.
        raise StorageError(f"{shown}: pymysql cannot connect ({error}); check the options of the address") from error


def _connecting(address: DatabaseAddress) -> dict[str, Any]:
    """How `create_engine` is to connect, as its keyword arguments."""
    if address.file is not None:
        return {"creator": partial(open_sqlite_file, address.file, _BUSY_TIMEOUT_S)}
    if address.kind == "mysql":
        # MySQL has no limit for rests within a transaction alone.
        limits = f"innodb_lock_wait_timeout = {_LOCK_TIMEOUT_S}, wait_timeout = {_MYSQL_REST_S}"
        settings = f"SET SESSION time_zone = '+00:00', {limits}"
        arguments: dict[str, Any] = {"connect_timeout": _CONNECT_TIMEOUT_S, "init_command": settings}
        # As on PostgreSQL: each statement sees what was committed before it.
        return {"connect_args": arguments, "isolation_level": "READ COMMITTED"}
    arguments = {"connect_timeout": _CONNECT_TIMEOUT_S, "application_name": "automl"}
    settings = f"-c lock_timeout={_LOCK_TIMEOUT_S}s -c idle_in_transaction_session_timeout={_IDLE_TIMEOUT_S}s"
    given = address.url.query.get("options", ())
    arguments["options"] = " ".join([settings, *([given] if isinstance(given, str) else given)])  # the last one wins
    arguments |= {"keepalives_idle": _SILENCE_S, "tcp_user_timeout": 1000 * _SILENCE_S}
    return {"connect_args": arguments}


def _prepare_sqlite(connection: Any, record: object) -> None:
    connection.isolation_level = None  # the driver begins nothing by itself
    connection.execute("PRAGMA foreign_keys=ON")
    # In the mode with a log a commit survives the death of every process; only a power cut may take the last ones back.
    connection.execute("PRAGMA synchronous=NORMAL")
