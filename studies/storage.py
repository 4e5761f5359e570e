"""The database that holds studies: connects, makes the tables, creates and finds studies, brings old tables up."""

import sqlite3
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from studies import summaries
from studies.database_url import DatabaseAddress
from studies.engines import SharedEngine, optuna_arguments
from studies.errors import StorageError, StudyNotFoundError
from studies.names import Direction, check_direction, check_study_name
from studies.schema.forms import Form, Found, look
from studies.schema.making import make_tables, optuna_address, upgrade_optuna_tables, upgrade_our_tables
from studies.schema.optuna_tables import OPTUNA_REVISION
from studies.sqlite_file import copy_beside
from studies.standing import Limits
from studies.study import Study
from studies.study_rows import StudyRow, delete_study_rows, find_study, insert_study, study_names
from studies.summaries import StudySummary
from studies.transactions import Transactions

if TYPE_CHECKING:
    import optuna

__all__ = ["Storage", "Upgrade"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """What `Storage.upgrade` has done.

    Attributes:
        done: what was changed, a clause each, such as `automl's tables from form 0001 to 0002`; empty: nothing to do.
        copy: where the database as it was is kept; None for a server, and where there was nothing to keep.
    """

    done: tuple[str, ...]
    copy: Path | None


class Storage:
    """A database of studies, shared by any number of processes.

    A SQLite file and its folder come into being with the first study, never by looking. A file that this process may
    not write can be read. Objects of one process with one address share their connections. Close it, or use it in a
    `with` statement.

    Args:
        url: `sqlite:///file.db`, `postgresql://user@host/database`, `mysql://user@host/database` (MariaDB too), or the
            path of a `.db` file.
        patience_s: how long a busy or unreachable database is asked again before an error.

    Raises:
        StorageError: the address is malformed, the driver is missing, or the server cannot be reached.
    """

    def __init__(self, url: str, *, patience_s: float = 120.0) -> None:
        self._address = DatabaseAddress.parse(url)
        shared = SharedEngine(self._address)
        self._finalizer = weakref.finalize(self, shared.release)
        self._transactions = Transactions(shared.engine, self.url, patience_s)
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

    def create_study(
        self,
        name: str,
        *,
        direction: Direction,
        specification: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
    ) -> Study:
        """Create a study, or open the one that has this name already, whose specification and limits stay as they are.

        Args:
            name: at most 512 characters, none of them a control character.
            direction: `maximize` or `minimize`.
            specification: plain JSON: all that is needed to go on with the search.
            limits: when the study has had enough; None: it never has.

        Raises:
            InvalidNameError: the name does not fit.
            DirectionMismatchError: the study exists and optimises the other way.
            StorageError: the database cannot be used.
        """
        check_study_name(name)
        check_direction(direction)
        self._make_tables()
        row = self._transactions.write(
            lambda c: insert_study(c, name, direction, specification or {}, limits or Limits())
        )
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

    def upgrade(self) -> Upgrade:
        """Bring the tables to the form that this program needs, and make those that are missing.

        Programs of an older version cannot use the database afterwards. A SQLite file is copied beside itself first.

        Raises:
            StorageError: the tables are another program's or of a newer version, or cannot be changed.
        """
        found = self._found()
        if found is not None and found.form is Form.READY:
            return Upgrade(done=(), copy=None)
        if found is None or found.form is Form.EMPTY:
            self._make_tables()
            return Upgrade(done=("made all tables",), copy=None)
        copy = self._copied()
        return Upgrade(done=(*self._upgrade_optuna(found), *self._upgrade_ours(found)), copy=copy)

    def hurry(self) -> None:
        """Ask a busy or unreachable database for a few seconds more only, from now on: this process is to end."""
        self._transactions.hurry()

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

        storage = optuna.storages.RDBStorage(
            optuna_address(self._address.url),
            engine_kwargs=optuna_arguments(self._address),
            skip_table_creation=True,
        )
        return optuna.load_study(study_name=name, storage=storage)

    def _found(self) -> Found | None:
        """What is there; None for a file that is missing, which looking must not make."""
        if self.file is not None and not self.file.exists():
            return None
        return self._transactions.read(lambda c: look(c, self.url))

    def _holds_tables(self) -> bool:
        if self._is_ready:
            return True
        found = self._found()
        if found is None:
            return False
        found.check_usable(self.url)
        if found.form is Form.WITHOUT_OURS:
            self._make_tables()
        self._is_ready = found.form is not Form.EMPTY
        return self._is_ready

    def _make_tables(self) -> None:
        if self._is_ready:
            return
        # Before anything is changed: even the journal mode of a foreign file must stay.
        found = self._found()
        if found is not None:
            found.check_usable(self.url)
        if self.file is not None:
            _make_folder(self.file.parent)
            # Readers and the writer do not wait for each other in this mode; it is a property of the file.
            self._transactions.outside(lambda c: c.exec_driver_sql("PRAGMA journal_mode=WAL").close())
        self._transactions.write(lambda c: make_tables(c, self.url))
        self._is_ready = True

    def _upgrade_optuna(self, found: Found) -> tuple[str, ...]:
        if found.optuna == OPTUNA_REVISION:
            return ()
        url, arguments = self._address.url, optuna_arguments(self._address)
        self._transactions.outside(lambda c: upgrade_optuna_tables(url, arguments))
        return (f"Optuna's tables from form {found.optuna} to {OPTUNA_REVISION}",)

    def _upgrade_ours(self, found: Found) -> tuple[str, ...]:
        ours = self._transactions.write(lambda c: upgrade_our_tables(c, self.url))
        if found.ours is None:
            return (f"automl's tables added, form {ours}",)
        return () if ours == found.ours else (f"automl's tables from form {found.ours} to {ours}",)

    def _copied(self) -> Path | None:
        if self.file is None:
            return None
        try:
            return copy_beside(self.file)
        except (OSError, sqlite3.Error) as error:
            raise StorageError(
                f"cannot keep a copy beside {self.file}: {error}; nothing was changed, make room or give the right to"
                " write there"
            ) from error


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make the folder {folder}: {error.strerror}; choose another place") from error
