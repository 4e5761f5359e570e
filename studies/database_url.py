"""Which database is meant: the address that a person gives, checked, made absolute, and printable without a secret."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from studies.errors import StorageError

__all__ = ["DatabaseAddress", "DatabaseKind"]

DatabaseKind: TypeAlias = Literal["sqlite", "postgresql", "mysql"]
"""SQLAlchemy's name of the dialect; MariaDB is `mysql`."""

_ALLOWED = "sqlite:///folder/study.db, postgresql://user@host/database or mysql://user@host/database"
_SECRET_OPTIONS = frozenset({"password", "passwd", "sslpassword", "ssl_key_password", "passfile"})
_SQLITE_SUFFIXES = frozenset({".db", ".sqlite", ".sqlite3"})
_DRIVERS: dict[str, tuple[DatabaseKind, str]] = {
    "postgres": ("postgresql", "psycopg"),
    "postgresql": ("postgresql", "psycopg"),
    "mysql": ("mysql", "pymysql"),
    "mariadb": ("mysql", "pymysql"),
}
"""Scheme without a driver -> kind of database and the one driver that is used for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseAddress:
    """A database that can hold studies.

    Attributes:
        url: what SQLAlchemy connects to; holds the password.
        shown: the same for people: without the password.
        file: the SQLite file, absolute; None for a server.
        kind: which database it is.
    """

    kind: DatabaseKind
    url: URL
    shown: str
    file: Path | None

    @classmethod
    def parse(cls, text: str) -> "DatabaseAddress":
        """Read an address; a bare file name that ends in .db, .sqlite or .sqlite3 is a SQLite file.

        Raises:
            StorageError: the address is malformed or of a database that is not supported.
        """
        if "://" not in text and Path(text).suffix in _SQLITE_SUFFIXES:
            return _sqlite(Path(text))
        url = _made(text)
        if url.drivername in ("sqlite", "sqlite+pysqlite"):
            return _sqlite(_sqlite_path(url))
        scheme, _, driver = url.drivername.partition("+")
        if scheme not in _DRIVERS:
            raise StorageError(f"{url.drivername!r} is not a supported kind of database; write {_ALLOWED}")
        kind, own_driver = _DRIVERS[scheme]
        if driver not in ("", own_driver):
            raise StorageError(
                f"the driver {driver!r} is not supported: {scheme} is reached by {own_driver}; write {scheme}://..."
            )
        return _server(url, kind, own_driver)


def _made(text: str) -> URL:
    scheme, separator, rest = text.partition("://")
    if not separator:
        # The text may be anything, a secret among it, so that it is not repeated.
        raise StorageError(f"the storage is not a database address; write {_ALLOWED}")
    if not scheme.startswith("sqlite"):
        _check_user_part(scheme, rest)
    try:
        return make_url(text)
    except (ArgumentError, ValueError):
        # ArgumentError and ValueError repeat the address with its password, hence `from None`.
        raise StorageError(f"the storage {scheme}://*** cannot be read; write {_ALLOWED}") from None


def _check_user_part(scheme: str, rest: str) -> None:
    authority = rest.partition("?")[0]
    user_part, at, _ = authority.rpartition("@")
    if not at:
        return
    wrong = [sign for sign in "@/" if sign in user_part]
    if re.search(r"%(?![0-9A-Fa-f]{2})", user_part):
        wrong.append("%")
    if wrong:
        codes = ", ".join(f"{sign} as %{ord(sign):02X}" for sign in wrong)
        raise StorageError(
            f"the user or password in {scheme}://*** holds a sign with a meaning of its own; write {codes}"
        )


def _sqlite_path(url: URL) -> Path:
    if url.query:
        raise StorageError(f"a SQLite address takes no options, got {', '.join(sorted(url.query))}; write {_ALLOWED}")
    if url.host:
        raise StorageError(f"a SQLite address has three slashes before a relative path; write sqlite:///{url.host}")
    if url.database in (None, "", ":memory:"):
        raise StorageError("a study in memory is gone with its process and cannot be shared; give a file")
    return Path(str(url.database))


def _sqlite(path: Path) -> DatabaseAddress:
    file = path.expanduser().absolute()
    if file.is_dir():
        raise StorageError(f"{file} is a folder; give the path of a file in it, such as {file / 'studies.db'}")
    url = URL.create("sqlite", database=str(file))
    return DatabaseAddress(kind="sqlite", url=url, shown=f"sqlite:///{file}", file=file)


def _server(url: URL, kind: DatabaseKind, driver: str) -> DatabaseAddress:
    if not url.database:
        raise StorageError(f"the address of a server names its database after the host; write {_ALLOWED}")
    # SQLAlchemy's plain `postgresql` has meant different drivers over time, so the driver is always named.
    url = url.set(drivername=f"{kind}+{driver}")
    shown = url.difference_update_query(name for name in url.query if name.lower() in _SECRET_OPTIONS)
    return DatabaseAddress(kind=kind, url=url, shown=shown.render_as_string(hide_password=True), file=None)
