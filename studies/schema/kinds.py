"""Types of columns that MySQL needs said more exactly than the others, for all tables that we make."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import DateTime, String, Text
from sqlalchemy.dialects import mysql

__all__ = ["LONG_TEXT", "MOMENT", "MYSQL_TABLE", "PATH"]

LONG_TEXT = Text().with_variant(mysql.LONGTEXT(), "mysql")
"""MySQL's TEXT ends at 64 kB."""
MOMENT = DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql")
"""MySQL's DATETIME has whole seconds."""
PATH = String(1024).with_variant(mysql.VARCHAR(512), "mysql")
"""A key of MySQL's holds 3072 bytes, and a character of utf8mb4 takes four."""
MYSQL_TABLE: Mapping[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}
"""Options of a table: every character fits, and names differ by case and accents, as on the other databases."""
