"""Which form a database has: empty, Optuna's, ours, or somebody else's; and bringing our tables to the newest form."""

import threading
from enum import Enum
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from studies.errors import StorageError
from studies.schema.optuna_tables import OPTUNA_REVISION, optuna_metadata
from studies.schema.tables import VERSION_TABLE

__all__ = ["Form", "form_of", "upgrade_our_tables"]

_ALEMBIC = threading.Lock()
"""Alembic keeps the migration that is running in a global of its module."""
_OPTUNA_TABLES = frozenset(optuna_metadata.tables) | {"version_info"}
_OPTUNA_VERSION_TABLE = "alembic_version"


class Form(Enum):
    """How much of the schema is there."""

    EMPTY = "empty"
    """Neither Optuna's tables nor ours."""
    PARTIAL = "partial"
    """Optuna's tables are there, ours are missing or old."""
    READY = "ready"
    """Everything is there in its newest form."""


def form_of(connection: Connection, shown: str) -> Form:
    """Look at a database without changing it.

    Raises:
        StorageError: the tables are another program's, or of an Optuna or automl of another time.
    """
    tables = set(inspect(connection).get_table_names())
    if not tables & (_OPTUNA_TABLES | {_OPTUNA_VERSION_TABLE}):
        return Form.EMPTY
    if not tables >= _OPTUNA_TABLES:
        foreign = ", ".join(sorted(tables)[:8])
        raise StorageError(
            f"{shown} belongs to another program (its tables: {foreign}); use another database or schema"
        )
    _check_optuna_revision(_revision(connection, _OPTUNA_VERSION_TABLE), shown)
    ours = _revision(connection, VERSION_TABLE) if VERSION_TABLE in tables else None
    return Form.READY if ours == _our_head(ours, shown) else Form.PARTIAL


def upgrade_our_tables(connection: Connection) -> None:
    """Bring our tables to the newest form, inside the caller's transaction."""
    config = _config()
    config.attributes["connection"] = connection
    with _ALEMBIC:
        command.upgrade(config, "head")


def _revision(connection: Connection, version_table: str) -> str | None:
    return MigrationContext.configure(connection, opts={"version_table": version_table}).get_current_revision()


def _check_optuna_revision(revision: str | None, shown: str) -> None:
    if revision != OPTUNA_REVISION:
        raise StorageError(
            f"{shown} has Optuna's tables in form {revision}, and this program needs {OPTUNA_REVISION};"
            f" keep a copy, then run: optuna storage upgrade --storage '{shown}'"
        )


def _our_head(revision: str | None, shown: str) -> str | None:
    scripts = _our_migrations()
    known = {script.revision for script in scripts.walk_revisions()}
    if revision is not None and revision not in known:
        raise StorageError(f"{shown} was written by a newer automl (form {revision}); update automl to open it")
    return scripts.get_current_head()


@cache
def _our_migrations() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def _config() -> Config:
    config = Config()
    # A per cent sign in the path would be taken for a variable of the configuration file.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return config
