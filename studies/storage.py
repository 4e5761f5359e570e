"""The database that holds studies: connects, makes the tables, creates and finds studies.

This is the only module that imports `optuna.storages` and makes SQLAlchemy engines.
"""

import os
import threading
import weakref
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, NullPool, create_engine, event, text

from studies import summaries
from studies.database_url import DatabaseAddress
from studies.errors import StorageError, StudyNotFoundError
from studies.names import Direction, check_direction, check_study_name
from studies.schema.forms import Form, form_of, upgrade_our_tables
from studies.schema.optuna_tables import OPTUNA_REVISION
from studies.sqlite_file import forget_still_pictures, open_sqlite_file
from studies.study import Study
from studies.study_rows import StudyRow, delete_study_rows, find_study, insert_study, study_names
from studies.summaries import StudySummary
from studies.transactions import Transactions, begin_sqlite_transactions

if TYPE_CHECKING:
    import optuna
    from alembic.script import ScriptDirectory

__all__ = ["Storage"]

_BUSY_TIMEOUT_S = 5.0
_CONNECT_TIMEOUT_S = 10
_CONNECTIONS = 2
"""Per process and database: one for the work, one for the thread that renews leases."""
_SCHEMA_LOCK = 0x6175746F6D6C  # "automl"; the key of PostgreSQL's advisory lock around the making of tables


class Storage:
    """A database of studies, shared by any number of processes.

    A SQLite file and its folder come into being with the first study, never by looking. A file that this process may
    not write can be read. Objects of one process with one address share their connections. Close it, or use it in a
    `with` statement.

    Args:
        url: `sqlite:///file.db`, `postgresql://user@host/database`, or the path of a `.db` file.
        patience_s: how long a busy or unreachable database is asked again before an error.

    Raises:
        StorageError: the address is malformed, the driver is missing, or the server cannot be reached.
    """

    def __init__(self, url: str, *, patience_s: float = 120.0) -> None:
        self._address = DatabaseAddress.parse(url)
        self._finalizer = weakref.finalize(self, _release, _acquire(self._address))
        self._transactions = Transactions(_ENGINES[_key(self._address)].engine, self.url, patience_s)
        self._is_ready = False
        if self._address.file is None:
            self._transactions.first_contact()

    @property
    def url(self) -> str:
        """The address for people: absolute, without a password."""
        return self._address.shown

    @property
    def file(self) -> Path | None:
        """The SQLite file; None for a server."""
        return self._address.file

    @property
    def engine(self) -> Engine:
        """SQLAlchemy's engine, to watch the statements; writing past this package breaks its promises."""
        return self._transactions.engine

    def create_study(self, name: str, *, direction: Direction, specification: Mapping[str, Any] | None = None) -> Study:
        """Create a study, or open the one that has this name already, whose specification then stays as it is.

        Args:
            name: at most 512 characters, none of them a control character.
            direction: `maximize` or `minimize`.
            specification: plain JSON: all that is needed to go on with the search.

        Raises:
            InvalidNameError: the name does not fit.
            DirectionMismatchError: the study exists and optimises the other way.
            StorageError: the database cannot be used.
        """
        check_study_name(name)
        check_direction(direction)
        self._make_tables()
        row = self._transactions.write(lambda c: insert_study(c, name, direction, specification or {}))
        self._transactions.settle()
        return self._study(row)

    def open_study(self, name: str) -> Study:
        """Open a study, also one that Optuna made.

        Raises:
            StudyNotFoundError: there is none of that name; the message has the nearest one.
            StorageError: the database cannot be used.
        """
        if not self._holds_tables():
            raise StudyNotFoundError(name, (), self.url)
        row = self._transactions.read(lambda c: find_study(c, name))
        if row is None:
            raise StudyNotFoundError(name, self._transactions.read(study_names), self.url)
        return self._study(row)

    def studies(self) -> tuple[StudySummary, ...]:
        """Sum up every study, in order of creation; the number of statements does not grow with the studies."""
        return self._transactions.read(summaries.summarise) if self._holds_tables() else ()

    def delete_study(self, name: str) -> None:
        """Delete a study with all its trials; files of checkpoints stay.

        Raises:
            StudyNotFoundError: there is none of that name.
        """
        study = self.open_study(name)
        self._transactions.write(lambda c: delete_study_rows(c, study.id))

    def close(self) -> None:
        """Give the connections back; its studies can still be used and connect anew."""
        self._finalizer()

    def __enter__(self) -> "Storage":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _study(self, row: StudyRow) -> Study:
        # The study holds on to this object, so that the connections live as long as the study.
        return Study(row, self._transactions, lambda: self._optuna_study(row.name))

    def _optuna_study(self, name: str) -> "optuna.Study":
        import optuna

        address = self._address.url.render_as_string(hide_password=False)
        storage = optuna.storages.RDBStorage(
            address.replace("{", "{{").replace("}", "}}"),  # Optuna fills templates in addresses
            engine_kwargs={"poolclass": NullPool, **_connecting(self._address)},
            skip_table_creation=True,
        )
        return optuna.load_study(study_name=name, storage=storage)

    def _holds_tables(self) -> bool:
        if self._is_ready:
            return True
        if self.file is not None and not self.file.exists():
            return False
        match self._transactions.read(lambda c: form_of(c, self.url)):
            case Form.EMPTY:
                return False
            case Form.PARTIAL:
                self._make_tables()
            case Form.READY:
                self._is_ready = True
        return True

    def _make_tables(self) -> None:
        if self._is_ready:
            return
        if self.file is not None:
            _make_folder(self.file.parent)
            self._check_is_ours()
            # Readers and the writer do not wait for each other in this mode; it is a property of the file.
            self._transactions.outside(lambda c: c.exec_driver_sql("PRAGMA journal_mode=WAL").close())
        self._transactions.write(lambda c: _make_all_tables(c, self.url))
        self._is_ready = True

    def _check_is_ours(self) -> None:
        # Before anything is changed: even the journal mode of a foreign file must stay.
        if self.file is not None and self.file.exists():
            self._transactions.read(lambda c: form_of(c, self.url))


def _make_all_tables(connection: Connection, shown: str) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _SCHEMA_LOCK})
    form = form_of(connection, shown)
    if form is Form.EMPTY:
        _make_optuna_tables(connection)
    if form is not Form.READY:
        upgrade_our_tables(connection)


def _make_optuna_tables(connection: Connection) -> None:
    # What RDBStorage does in several transactions, in the caller's one: two processes may meet a new database.
    import optuna
    from alembic.migration import MigrationContext
    from optuna.storages._rdb import models

    scripts = _optuna_migrations()
    if scripts.get_current_head() != OPTUNA_REVISION:
        raise StorageError(
            f"Optuna {optuna.__version__} makes tables of form {scripts.get_current_head()}, and this program needs"
            f" {OPTUNA_REVISION}; install a version of Optuna that this automl allows"
        )
    models.BaseModel.metadata.create_all(connection)
    connection.execute(
        models.VersionInfoModel.__table__.insert(),
        {"schema_version": models.SCHEMA_VERSION, "library_version": optuna.__version__},
    )
    MigrationContext.configure(connection).stamp(scripts, "head")


@cache
def _optuna_migrations() -> "ScriptDirectory":
    from alembic.script import ScriptDirectory
    from optuna.storages import _rdb

    return ScriptDirectory(str(Path(_rdb.__path__[0]) / "alembic"))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make the folder {folder}: {error.strerror}; choose another place") from error


class _SharedEngine:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.users = 0


_ENGINES: dict[str, _SharedEngine] = {}
_ENGINES_LOCK = threading.RLock()


def _key(address: DatabaseAddress) -> str:
    return address.url.render_as_string(hide_password=False)


def _acquire(address: DatabaseAddress) -> str:
    key = _key(address)
    with _ENGINES_LOCK:
        if key not in _ENGINES:
            _ENGINES[key] = _SharedEngine(_new_engine(address))
        _ENGINES[key].users += 1
    return key


def _release(key: str) -> None:
    with _ENGINES_LOCK:
        shared = _ENGINES[key]
        shared.users -= 1
        if shared.users == 0:
            _ENGINES.pop(key).engine.dispose()


_PARENTS: list[object] = []


def _leave_connections_to_parent() -> None:
    # A forked child must neither use nor close the connections that its parent goes on using; what is thrown away
    # would be closed, so that it is kept.
    for shared in _ENGINES.values():
        _PARENTS.append(shared.engine.pool)
        shared.engine.dispose(close=False)


os.register_at_fork(after_in_child=_leave_connections_to_parent)


def _new_engine(address: DatabaseAddress) -> Engine:
    try:
        engine = create_engine(
            address.url,
            **_connecting(address),
            pool_size=_CONNECTIONS,
            max_overflow=0,
            pool_pre_ping=address.file is None,
        )
    except ModuleNotFoundError as error:
        raise StorageError(
            f"{address.shown}: the driver {error.name!r} is not installed; run: pip install 'automl[postgres]'"
        ) from error
    if address.file is not None:
        event.listen(engine, "connect", _prepare_sqlite)
        forget_still_pictures(engine)
        begin_sqlite_transactions(engine)
    return engine


def _connecting(address: DatabaseAddress) -> dict[str, Any]:
    """How `create_engine` is to connect, as its keyword arguments."""
    if address.file is not None:
        return {"creator": partial(open_sqlite_file, address.file, _BUSY_TIMEOUT_S)}
    arguments: dict[str, Any] = {"connect_timeout": _CONNECT_TIMEOUT_S, "application_name": "automl"}
    if "options" not in address.url.query:
        # A lock is waited for in steps, so that a long wait is seen in the log.
        arguments["options"] = "-c lock_timeout=10s"
    return {"connect_args": arguments}


def _prepare_sqlite(connection: Any, record: object) -> None:
    connection.isolation_level = None  # the driver begins nothing by itself
    connection.execute("PRAGMA foreign_keys=ON")
