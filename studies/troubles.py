"""What a failed statement says about the database, and how that is put into one line."""

from enum import Enum

from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from studies.errors import StorageAwayError, StorageError, StorageFullError

__all__ = ["Trouble", "first_line", "in_words", "may_be_committed", "trouble_of"]

_SQLITE_BUSY_LOCKED = (5, 6)
_SQLITE_FULL = 13
_POSTGRESQL_DISK_FULL = "53100"
_POSTGRESQL_PASSING = ("25P03", "40001", "40P01", "55P03", "53300", "57P01", "57P02", "57P03")
"""Idle for too long, serialisation, deadlock, lock wait, too many clients, shutdown, crash, starting up; see
PostgreSQL, appendix A."""
_MYSQL_PASSING = (1020, 1040, 1053, 1203, 1205, 1213, 1226)
"""Changed meanwhile, too many clients, shutdown, too many of a user (2), lock wait, deadlock; see MySQL's reference."""
_MYSQL_LOST = (0, 1152, 1158, 1159, 1160, 1161, 1927, 2002, 2003, 2006, 2013, 2055)
"""Broken network, killed connection, no answer; 0 is the driver's word for a connection that is closed already."""
_MYSQL_FULL = (1021, 1114)
_PASSING_TEXTS = (
    "too many clients",
    "too many connections",
    "connection slots are reserved",
    "starting up",
    "shutting down",
)
"""An error at connecting carries no code, only text."""


class Trouble(Enum):
    """What a failed statement says about the database."""

    PASSING = "busy"
    """Busy: the same transaction works later."""
    UNREACHABLE = "unreachable"
    """The connection broke, or none could be made."""
    FULL = "full"
    """The disk is full."""
    LASTING = "lasting"
    """Repeating does not help."""


def trouble_of(error: SQLAlchemyError) -> Trouble:
    """Classify an error by the driver's own code."""
    if isinstance(error, PoolTimeoutError):
        return Trouble.PASSING
    if not isinstance(error, DBAPIError) or error.orig is None:
        return Trouble.LASTING
    sqlite_code = getattr(error.orig, "sqlite_errorcode", None)
    if sqlite_code is not None:
        primary = sqlite_code & 0xFF  # the higher bits only refine it
        return {_SQLITE_FULL: Trouble.FULL}.get(
            primary, Trouble.PASSING if primary in _SQLITE_BUSY_LOCKED else Trouble.LASTING
        )
    match error.orig.args:
        case [int(code), *_]:
            return _mysql_trouble(error, code)
        case _:
            return _postgresql_trouble(error, getattr(error.orig, "sqlstate", None))


def in_words(error: SQLAlchemyError, shown: str) -> StorageError:
    """Put a driver's error into one line that says where it happened and what to do."""
    trouble, line = trouble_of(error), first_line(error)
    match trouble:
        case Trouble.FULL:
            return StorageFullError(f"{shown}: the disk is full ({line}); free some space and go on")
        case Trouble.PASSING:
            return StorageAwayError(
                f"{shown}: the database stayed busy ({line}); see which process holds it and try again"
            )
        case Trouble.UNREACHABLE:
            return StorageAwayError(f"{shown}: cannot connect ({line}); {_advice(line)}")
        case Trouble.LASTING:
            return StorageError(f"{shown}: {line}; {_advice(line)}")


def may_be_committed(error: SQLAlchemyError, trouble: Trouble) -> bool:
    """Whether the transaction may have taken place all the same: the connection broke, perhaps before the answer came.

    Of a lock or a deadlock the database itself says that it has undone everything.
    """
    return trouble is Trouble.UNREACHABLE or (isinstance(error, DBAPIError) and error.connection_invalidated)


def first_line(error: SQLAlchemyError) -> str:
    """The first line of the driver's own text: SQLAlchemy adds the statement and its values, which may be private."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    match getattr(cause, "args", ()):
        case [int(), str(text), *_]:  # MySQL's code and its words
            pass
        case _:
            text = str(cause)
    text = text.strip()
    line = " ".join(text.splitlines()[:1]) or type(error).__name__
    return line.rstrip(".")


def _postgresql_trouble(error: DBAPIError, code: str | None) -> Trouble:
    text = str(error.orig)
    if code == _POSTGRESQL_DISK_FULL:
        return Trouble.FULL
    if code in _POSTGRESQL_PASSING or any(part in text for part in _PASSING_TEXTS):
        return Trouble.PASSING
    lost = error.connection_invalidated or (code or "").startswith("08")
    connecting = isinstance(error, OperationalError) and code is None
    return Trouble.UNREACHABLE if lost or connecting else Trouble.LASTING


def _mysql_trouble(error: DBAPIError, code: int) -> Trouble:
    if code in _MYSQL_FULL:
        return Trouble.FULL
    if code in _MYSQL_PASSING:
        return Trouble.PASSING
    return Trouble.UNREACHABLE if code in _MYSQL_LOST or error.connection_invalidated else Trouble.LASTING


_ADVICE = {
    "permission denied": "ask the owner of the database for the right to create and change tables",
    "password authentication failed": "check the user and the password",
    "Access denied for user": "check the user, the password and the user's rights",
    "Unknown database": "check the name, or create it with `CREATE DATABASE`",
    "command denied": "ask the owner of the database for the right to create and change tables",
    "no password supplied": "write the password into the address, or into ~/.pgpass",
    'role "': "check the user",
    'database "': "check the name, or create it with `createdb`",
    "Connection refused": "check host and port, and that the server runs",
    "resolve": "check the name of the host",
    "service not known": "check the name of the host",
    "not a database": "give another file: this one is not a SQLite database",
    "readonly": "check the permissions of the file and its folder",
    "unable to open": "check the permissions of the file and its folder",
}


def _advice(line: str) -> str:
    for part, advice in _ADVICE.items():
        if part.lower() in line.lower():
            return advice
    return "check the address and the state of the database"
