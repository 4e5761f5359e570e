"""Makes the tables of a database, Optuna's and ours, and brings older ones to the newest form."""

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from alembic import command
from alembic.migration import MigrationContext
from sqlalchemy import URL, Connection, DateTime, MetaData, Text
from sqlalchemy.types import TypeEngine

from studies.errors import StorageError
from studies.schema.forms import Form, look, optuna_migrations, our_migrations, ours_config
from studies.schema.kinds import LONG_TEXT, MOMENT, MYSQL_TABLE
from studies.schema.lock import schema_lock
from studies.schema.optuna_tables import OPTUNA_REVISION
from studies.schema.tables import automl_studies
from studies.upsert import insert_missing

__all__ = ["make_tables", "optuna_address", "upgrade_optuna_tables", "upgrade_our_tables"]

_ALEMBIC = threading.Lock()
"""Alembic keeps the migration that is running in a global of its module."""


def make_tables(connection: Connection, shown: str) -> None:
    """Make what is missing, in the caller's transaction; another process may do the same at that moment.

    Raises:
        StorageError: the tables are not ours, or of an older form.
    """
    with schema_lock(connection):
        found = look(connection, shown)
        found.check_usable(shown)
        if found.form is Form.EMPTY:
            _make_optuna_tables(connection)
        if found.form is not Form.READY:
            _upgrade_ours(connection, found.ours)


def upgrade_our_tables(connection: Connection, shown: str) -> str | None:
    """Bring our tables to the newest form, in the caller's transaction; Optuna's are so already.

    Returns:
        The form that they have now.

    Raises:
        StorageError: the tables are another program's, or of a newer version.
    """
    with schema_lock(connection):
        found = look(connection, shown)
        if found.form is not Form.READY:
            _upgrade_ours(connection, found.ours)
    return our_migrations().get_current_head()


def upgrade_optuna_tables(url: URL, arguments: dict[str, Any]) -> None:
    """Let Optuna bring its own tables to the newest form, over connections of its own.

    Args:
        url: the database, with the password.
        arguments: how Optuna makes its engine.
    """
    import optuna

    with _untouched_logging(), _ALEMBIC:
        optuna.storages.RDBStorage(
            optuna_address(url), engine_kwargs=arguments, skip_compatibility_check=True, skip_table_creation=True
        ).upgrade()


def optuna_address(url: URL) -> str:
    """The address as Optuna takes it, which fills templates in addresses."""
    return url.render_as_string(hide_password=False).replace("{", "{{").replace("}", "}}")


def _upgrade_ours(connection: Connection, revision: str | None) -> None:
    if connection.dialect.name == "mysql" and revision is None:
        # Each table is committed by itself there: some may be left of a process that was ended, and nobody used them.
        automl_studies.metadata.drop_all(connection)
    config = ours_config()
    config.attributes["connection"] = connection
    with _ALEMBIC:
        command.upgrade(config, "head")


def _make_optuna_tables(connection: Connection) -> None:
    # What RDBStorage does in several transactions, in the caller's one: two processes may meet a new database.
    import optuna
    from optuna.storages._rdb import models

    head = optuna_migrations().get_current_head()
    if head != OPTUNA_REVISION:
        raise StorageError(
            f"Optuna {optuna.__version__} makes tables of form {head}, and this program needs {OPTUNA_REVISION};"
            " install a version of Optuna that this automl allows"
        )
    metadata = models.BaseModel.metadata
    (_for_mysql(metadata) if connection.dialect.name == "mysql" else metadata).create_all(connection)
    values = {"schema_version": models.SCHEMA_VERSION, "library_version": optuna.__version__}
    insert_missing(connection, metadata.tables["version_info"], ["version_info_id"], {"version_info_id": 1, **values})
    MigrationContext.configure(connection).stamp(optuna_migrations(), "head")


def _for_mysql(metadata: MetaData) -> MetaData:
    """The same tables, so that names differ by case and accents, long texts fit, and times have fractions."""
    made = MetaData()
    for original in metadata.tables.values():
        copy = original.to_metadata(made)
        copy.dialect_options["mysql"].update(
            {name.removeprefix("mysql_"): value for name, value in MYSQL_TABLE.items()}
        )
        for column in copy.columns:
            column.type = _MYSQL_TYPES.get(type(column.type), column.type)
    return made


_MYSQL_TYPES: Mapping[type[TypeEngine[Any]], TypeEngine[Any]] = {Text: LONG_TEXT, DateTime: MOMENT}


@contextmanager
def _untouched_logging() -> Iterator[None]:
    # Optuna's migrations configure the logging of the whole process where nobody has done so.
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
