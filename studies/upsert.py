"""Insert a row, or change the row of the same key: the one statement whose form differs between the databases."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

__all__ = ["insert_missing", "upsert"]


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
    statement = _insert(connection, table)
    given = {column.name for column in table.columns if column.name in rows[0] or column.default is not None}
    changed = {name: statement.excluded[name] for name in given if name not in keys}
    connection.execute(statement.on_conflict_do_update(index_elements=list(keys), set_=changed), list(rows))


def insert_missing(connection: Connection, table: Table, keys: Sequence[str], row: Mapping[str, Any]) -> bool:
    """Insert the row unless one of these keys exists; whether it was inserted.

    Waits for another transaction that inserts the same keys just now.
    """
    statement = _insert(connection, table).values(dict(row)).on_conflict_do_nothing(index_elements=list(keys))
    return connection.execute(statement.returning(*(table.c[key] for key in keys))).first() is not None


def _insert(connection: Connection, table: Table) -> "sqlite.Insert | postgresql.Insert":
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)
