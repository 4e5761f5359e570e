"""Errors on one rank while all ranks compute together: kept until a moment in which every rank can hear of them."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["HeldErrors"]


class HeldErrors:
    """Keeps the first error of blocks that do not communicate, so that the rank goes on with what the others wait for.

    `check` is called within `Ranks.together`: there the error comes out, and the other ranks are told.
    """

    def __init__(self) -> None:
        self._first: Exception | None = None

    def __bool__(self) -> bool:
        """Whether a block has failed."""
        return self._first is not None

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Run a block that does not communicate; an error ends the block alone."""
        try:
            yield
        except Exception as error:
            self._first = self._first or error

    def check(self) -> None:
        """Raise the first error, if there was one."""
        if self._first is not None:
            raise self._first
