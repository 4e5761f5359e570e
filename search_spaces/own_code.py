"""A person's own code, such as that of a network or a hook, where we call it: how it may fail, where it may print."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Final

__all__ = ["OWN_CODE_ERRORS", "error_in_words", "prints_aside"]

OWN_CODE_ERRORS: Final = (Exception, SystemExit)
"""What a person's code may raise while it fails: `sys.exit` in it is a fault of that code, and not the end of ours."""


def error_in_words(error: BaseException) -> str:
    """Return the kind of an error and what it says, such as `KeyError: 'width'`."""
    said = f"it called sys.exit({error.code!r})" if isinstance(error, SystemExit) else str(error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


@contextmanager
def prints_aside(is_wanted: bool = True) -> Iterator[None]:
    """Send what is printed within to stderr, so that stdout has nothing but a command's own answer.

    Args:
        is_wanted: whether to do so.
    """
    if not is_wanted:
        yield
        return
    with redirect_stdout(sys.stderr):
        yield
