"""The errors of a whole search; each carries its exit code and a message that says what to do."""

from collections.abc import Sequence

__all__ = [
    "AutomlError",
    "InvalidSpecError",
    "NothingCompletedError",
    "SearchCutOffError",
    "UnknownPluginError",
    "WorkersLostError",
]


class AutomlError(Exception):
    """Base of the errors that end a command; the message stands alone, without a traceback."""

    exit_code: int = 1


class InvalidSpecError(AutomlError, ValueError):
    """A search was asked for that cannot be run; holds every mistake that was found.

    Attributes:
        problems: one sentence per mistake.
        origin: where the values came from, such as `command line` or a file's name.
    """

    exit_code = 2

    def __init__(self, problems: Sequence[str], origin: str) -> None:
        self.problems = tuple(problems)
        self.origin = origin
        count = "1 mistake" if len(self.problems) == 1 else f"{len(self.problems)} mistakes"
        super().__init__("\n".join([f"{count} in {origin}:", *(f"  - {problem}" for problem in self.problems)]))


class UnknownPluginError(AutomlError, KeyError):
    """No sampler, pruner or executor of that name exists."""

    exit_code = 2

    def __str__(self) -> str:
        """Return the message without KeyError's quotes."""
        return str(self.args[0])


class WorkersLostError(AutomlError):
    """What runs the trials of a search is gone, and no trial can be started or heard of any more."""


class SearchCutOffError(AutomlError):
    """A search had to end before its time, as its database or its workers are gone, or it was told to.

    The study goes on from what it has stored.

    Attributes:
        exit_code: 1, or 130 or 143 when a signal asked for the end.
    """

    def __init__(self, message: str, exit_code: int = 1) -> None:
        self.exit_code = exit_code
        super().__init__(message)


class NothingCompletedError(AutomlError):
    """A search ended, and no trial has a value."""

    exit_code = 3
