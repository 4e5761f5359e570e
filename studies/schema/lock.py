"""One process at a time makes or changes tables, also where that is no part of a transaction."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, text

from studies.errors import StorageError

__all__ = ["schema_lock"]

_POSTGRESQL_KEY = 0x6175746F6D6C  # "automl"
_MYSQL_NAME = "CONCAT('automl:', MD5(DATABASE()))"  # its locks are the whole server's
_PATIENCE_S = 60


@contextmanager
def schema_lock(connection: Connection) -> Iterator[None]:
    """Hold the right to change the tables; wait for another process that holds it.

    On SQLite the caller's transaction is that right. PostgreSQL gives it back with the transaction, because nobody may
    look before the tables are committed; MySQL commits each change of a table by itself.

    Raises:
        StorageError: another process holds it for too long.
    """
    match connection.dialect.name:
        case "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _POSTGRESQL_KEY})
            yield
        case "mysql":
            if not connection.scalar(text(f"SELECT GET_LOCK({_MYSQL_NAME}, {_PATIENCE_S})")):
                raise StorageError(
                    f"another process has been changing the tables of the database for {_PATIENCE_S} s; try again when"
                    " it is done"
                )
            try:
                yield
                # The number of the newest migration is an ordinary row: whoever looks next must find it committed.
                connection.exec_driver_sql("COMMIT")
            finally:
                if not connection.invalidated:  # or the server has given it back already
                    connection.execute(text(f"SELECT RELEASE_LOCK({_MYSQL_NAME})"))
        case _:
            yield
