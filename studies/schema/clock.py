"""The database's own clock as SQL, so that machines with different clocks agree on the end of a lease."""

from typing import Any

from sqlalchemy import DateTime, Double
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

__all__ = ["epoch_now", "utc_now"]


class utc_now(FunctionElement[Any]):
    """The present time, naive UTC, as Optuna stores it."""

    type = DateTime()
    inherit_cache = True


class epoch_now(FunctionElement[Any]):
    """The present time in seconds since 1970, with fractions."""

    type = Double()
    inherit_cache = True


@compiles(utc_now, "sqlite")  # type: ignore[no-untyped-call,untyped-decorator,unused-ignore]
def _utc_now_sqlite(element: utc_now, compiler: SQLCompiler, **options: Any) -> str:
    return "strftime('%Y-%m-%d %H:%M:%f000', 'now')"


@compiles(utc_now, "postgresql")  # type: ignore[no-untyped-call,untyped-decorator,unused-ignore]
def _utc_now_postgresql(element: utc_now, compiler: SQLCompiler, **options: Any) -> str:
    return "timezone('utc', clock_timestamp())"


@compiles(epoch_now, "sqlite")  # type: ignore[no-untyped-call,untyped-decorator,unused-ignore]
def _epoch_now_sqlite(element: epoch_now, compiler: SQLCompiler, **options: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"  # 2440587.5 is 1970-01-01 as a Julian day


@compiles(epoch_now, "postgresql")  # type: ignore[no-untyped-call,untyped-decorator,unused-ignore]
def _epoch_now_postgresql(element: epoch_now, compiler: SQLCompiler, **options: Any) -> str:
    return "date_part('epoch', clock_timestamp())"


@compiles(utc_now, "mysql")  # type: ignore[no-untyped-call,untyped-decorator,unused-ignore]
def _utc_now_mysql(element: utc_now, compiler: SQLCompiler, **options: Any) -> str:
    return "UTC_TIMESTAMP(6)"


@compiles(epoch_now, "mysql")  # type: ignore[no-untyped-call,untyped-decorator,unused-ignore]
def _epoch_now_mysql(element: epoch_now, compiler: SQLCompiler, **options: Any) -> str:
    # NOW() is the time at which a statement began, maybe long before it had its lock. Our connections are set to UTC,
    # because an hour of local time comes twice a year; the sum makes the decimal number a double.
    return "(UNIX_TIMESTAMP(SYSDATE(6)) + 0.0e0)"
