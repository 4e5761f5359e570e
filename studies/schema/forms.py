"""Which form the tables of a database have: none, Optuna's, ours, or somebody else's. Looking changes nothing."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, String, column, inspect, select, table

from studies.errors import StorageError
from studies.schema.lock import schema_lock
from studies.schema.optuna_tables import OPTUNA_REVISION, optuna_metadata
from studies.schema.tables import VERSION_TABLE

__all__ = ["Form", "Found", "look", "optuna_migrations", "our_migrations", "ours_config"]

_OPTUNA_COLUMNS = {
    **{name: set(table.columns.keys()) for name, table in optuna_metadata.tables.items()},
    "version_info": {"schema_version", "library_version"},
}
_OPTUNA_TABLES = frozenset(_OPTUNA_COLUMNS)
_OPTUNA_VERSION_TABLE = "alembic_version"
_MOST_NAMED = 8


class Form(Enum):
    """What has to be done before a database can be used."""

    EMPTY = "empty"
    """Neither Optuna's tables nor ours: all are made."""
    WITHOUT_OURS = "without ours"
    """Optuna's tables as we need them: ours are added."""
    OLD = "old"
    """Optuna's tables or ours are of an older form, or Optuna's are not there completely."""
    READY = "ready"
    """Nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The tables of a database that belongs to nobody else.

    Attributes:
        form: what has to be done.
        optuna: revision of Optuna's tables; None: there are none.
        ours: revision of ours; None: there are none.
    """

    form: Form
    optuna: str | None
    ours: str | None

    def check_usable(self, shown: str) -> None:
        """Refuse tables of an older form: other machines may still work with them by an older program.

        Raises:
            StorageError: they are; it says which form, and the command that changes it.
        """
        if self.form is not Form.OLD:
            return
        whose, revision, needed = (
            ("Optuna's", self.optuna, OPTUNA_REVISION)
            if self.optuna != OPTUNA_REVISION
            else ("automl's", self.ours, our_migrations().get_current_head())
        )
        raise StorageError(
            f"{shown} has {whose} tables in form {revision}, and this program needs {needed}; end the programs that use"
            f" them, then run: automl storage upgrade --storage '{shown}'"
        )


def look(connection: Connection, shown: str) -> Found:
    """Look at the tables.

    Raises:
        StorageError: they are another program's, or of a newer Optuna or automl.
    """
    if connection.dialect.name != "mysql":
        return _look(connection, shown)
    try:
        found = _look(connection, shown)
    except StorageError:
        found = None
    if found is not None and found.form in (Form.EMPTY, Form.READY):
        return found
    # Each table appears by itself there: another process may be in the middle of making them.
    with schema_lock(connection):
        return _look(connection, shown)


def _look(connection: Connection, shown: str) -> Found:
    tables = frozenset(inspect(connection).get_table_names())
    if not tables & (_OPTUNA_TABLES | {_OPTUNA_VERSION_TABLE}):
        return Found(form=Form.EMPTY, optuna=None, ours=None)
    optuna = _revision(connection, _OPTUNA_VERSION_TABLE, tables)
    if optuna is None and _is_half_made(connection, tables):
        return Found(form=Form.EMPTY, optuna=None, ours=None)
    if not _is_known_optuna(optuna):
        _refuse_unknown(tables, optuna, shown)
    ours = _revision(connection, VERSION_TABLE, tables)
    return Found(form=_form(optuna, ours, shown), optuna=optuna, ours=ours)


def _form(optuna: str | None, ours: str | None, shown: str) -> Form:
    head = our_migrations().get_current_head()
    if ours is not None and ours not in {script.revision for script in our_migrations().walk_revisions()}:
        raise StorageError(f"{shown} was written by a newer automl (form {ours}); update automl to open it")
    if optuna != OPTUNA_REVISION or ours not in (None, head):
        return Form.OLD
    return Form.WITHOUT_OURS if ours is None else Form.READY


def _refuse_unknown(tables: Collection[str], revision: str | None, shown: str) -> None:
    if _OPTUNA_TABLES <= set(tables):
        raise StorageError(
            f"{shown} has Optuna's tables in form {revision}, which this program does not know (it needs"
            f" {OPTUNA_REVISION}); update automl, or use another database or schema"
        )
    named = ", ".join(sorted(tables)[:_MOST_NAMED])
    more = "" if len(tables) <= _MOST_NAMED else f", ... ({len(tables)} in all)"
    raise StorageError(
        f"{shown} belongs to another program (its tables: {named}{more}); use another database or schema"
    )


def _revision(connection: Connection, version_table: str, tables: Collection[str]) -> str | None:
    if version_table not in tables:
        return None
    query = select(column("version_num", String)).select_from(table(version_table))
    revisions: Iterable[str] = connection.scalars(query)
    return ", ".join(sorted(revisions)) or None


def _is_half_made(connection: Connection, tables: Collection[str]) -> bool:
    """Whether the process that made Optuna's tables was ended in between, which only MySQL leaves behind."""
    present = [name for name in _OPTUNA_TABLES if name in tables]
    if connection.dialect.name != "mysql" or not present:
        return False
    inspector = inspect(connection)
    return all(_OPTUNA_COLUMNS[name] <= {column["name"] for column in inspector.get_columns(name)} for name in present)


def _is_known_optuna(revision: str | None) -> bool:
    if revision == OPTUNA_REVISION:  # the usual case does not load Optuna
        return True
    return revision in {script.revision for script in optuna_migrations().walk_revisions()}


@cache
def optuna_migrations() -> ScriptDirectory:
    """The migrations of the installed Optuna."""
    from optuna.storages import _rdb

    return ScriptDirectory(str(Path(_rdb.__path__[0]) / "alembic"))


@cache
def our_migrations() -> ScriptDirectory:
    """Our own migrations."""
    return ScriptDirectory.from_config(ours_config())


def ours_config() -> Config:
    """Alembic's configuration for our own migrations."""
    config = Config()
    # A per cent sign in the path would be taken for a variable of the configuration file.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return config
