"""Insert a row, or change the row of the same key: the statements whose form differs between the databases."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql.dml import Insert

__all__ = ["insert_missing", "upsert"]

_MYSQL_DUPLICATE = 1062


def upsert(connection: Connection, table: Table, keys: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the rows in one statement; a row whose keys exist is changed.

    Args:
        connection: holds the transaction.
        table: has a unique constraint on exactly `keys`.
        keys: names of the key columns.
        rows: column -> value, all with the same columns; may be empty.
    """
    if not rows:
        return
    given = [column.name for column in table.columns if column.name in rows[0] or column.default is not None]
    changed = tuple(name for name in given if name not in keys)
    connection.execute(_upsert(connection.dialect.name, table, tuple(keys), changed), list(rows))


def insert_missing(connection: Connection, table: Table, keys: Sequence[str], row: Mapping[str, Any]) -> bool:
    """Insert the row unless one of these keys exists; whether it was inserted.

    Waits for another transaction that inserts the same keys just now.
    """
    if connection.dialect.name == "mysql":
        return _insert_unless_duplicate(connection, table, row)
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement = insert(table).values(dict(row)).on_conflict_do_nothing(index_elements=list(keys))
    return connection.execute(statement.returning(*(table.c[key] for key in keys))).first() is not None


@cache  # there are few, and building one takes longer than running it
def _upsert(dialect: str, table: Table, keys: tuple[str, ...], changed: tuple[str, ...]) -> Insert:
    if dialect == "mysql":
        new = mysql.insert(table)
        return new.on_duplicate_key_update({name: new.inserted[name] for name in changed})
    statement = sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)
    values = {name: statement.excluded[name] for name in changed}
    return statement.on_conflict_do_update(index_elements=list(keys), set_=values)


def _insert_unless_duplicate(connection: Connection, table: Table, row: Mapping[str, Any]) -> bool:
    # INSERT IGNORE would also swallow what is too long or refers to a deleted row. A duplicate undoes its own statement
    # only, so that the transaction goes on.
    try:
        connection.execute(table.insert().values(dict(row)))
    except IntegrityError as error:
        if error.orig is None or error.orig.args[:1] != (_MYSQL_DUPLICATE,):
            raise
        return False
    return True
