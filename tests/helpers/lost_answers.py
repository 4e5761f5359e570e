"""A database whose answer to a commit is lost on the way: the write took place, and its caller does not know."""

import sqlite3
from collections.abc import Callable

import pytest
from sqlalchemy.exc import OperationalError

from studies.transactions import Transactions

__all__ = ["lose_next_answer"]


def lose_next_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next transaction be committed, and its connection break before the answer arrives."""
    original = Transactions._once

    def once(self: Transactions, work: Callable[..., object], begin: str) -> object:
        monkeypatch.setattr(Transactions, "_once", original)
        original(self, work, begin)
        raise OperationalError("COMMIT", {}, sqlite3.OperationalError(), connection_invalidated=True)

    monkeypatch.setattr(Transactions, "_once", once)
