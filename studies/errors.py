"""What can go wrong with the shared study database; every message says what to do next."""

from collections.abc import Iterable
from difflib import get_close_matches

from studies.trial import Lease

__all__ = [
    "BudgetSpentError",
    "CheckpointStoreError",
    "DirectionMismatchError",
    "IncompatibleDistributionError",
    "InvalidNameError",
    "LeaseLostError",
    "NotClaimableError",
    "NumberTakenError",
    "StorageAwayError",
    "StorageError",
    "StorageFullError",
    "StudyError",
    "StudyNotFoundError",
    "TrialNotFoundError",
]


class StudyError(Exception):
    """Base of every error of this package that someone can react to."""


class StorageError(StudyError):
    """The database cannot be used; the message is one line and never holds a password."""


class StorageAwayError(StorageError):
    """The database stayed busy or could not be reached; the same may work later."""


class StorageFullError(StorageError):
    """The disk under the database is full."""


class CheckpointStoreError(StudyError):
    """The files of the checkpoints cannot be reached; nothing is known about them, and the ledger stays as it is."""


class InvalidNameError(StudyError, ValueError):
    """A name does not fit into the database, or could not be told apart on a terminal."""


class StudyNotFoundError(StudyError, KeyError):
    """No study of that name is in the database.

    Attributes:
        name: the name that was asked for.
        existing: the names that are there.
    """

    def __init__(self, name: str, existing: Iterable[str], place: str) -> None:
        self.name = name
        self.existing = tuple(existing)
        near = get_close_matches(name, self.existing, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ";"
        known = f"existing: {_listed(self.existing)}" if self.existing else "there is no study in it yet"
        self.message = f"no study {name!r} in {place}{hint} {known}"
        super().__init__(self.message)

    def __str__(self) -> str:
        """Return the message without KeyError's quotes."""
        return self.message


class TrialNotFoundError(StudyError, KeyError):
    """The study has no trial of that key."""

    def __init__(self, trial_id: int, study: str) -> None:
        self.trial_id = trial_id
        self.message = f"study {study!r} has no trial with id {trial_id}"
        super().__init__(self.message)

    def __str__(self) -> str:
        """Return the message without KeyError's quotes."""
        return self.message


class DirectionMismatchError(StudyError, ValueError):
    """A study exists already and optimises the other way."""

    def __init__(self, name: str, *, existing: str, wanted: str) -> None:
        self.name, self.existing, self.wanted = name, existing, wanted
        super().__init__(
            f"study {name!r} exists with direction {existing!r}, but {wanted!r} was asked for;"
            f" ask for {existing!r} or give the new study another name"
        )


class IncompatibleDistributionError(StudyError, ValueError):
    """A parameter changed its kind since the study's earlier trials."""


class BudgetSpentError(StudyError):
    """All places of the study's budget are claimed."""

    def __init__(self, claimed: int, budget: int) -> None:
        self.claimed, self.budget = claimed, budget
        super().__init__(f"{claimed} of {budget} trials are claimed; no place is left")


class NumberTakenError(StudyError):
    """Another process created the trial of that number first; look at the study again and suggest anew."""

    def __init__(self, number: int, next_number: int) -> None:
        self.number, self.next_number = number, next_number
        super().__init__(f"trial number {number} was suggested for, but the next number is {next_number}")


class LeaseLostError(StudyError):
    """The trial has another owner, or has ended: its old owner stops and takes new work."""

    def __init__(self, lease: Lease, reason: str) -> None:
        self.lease, self.reason = lease, reason
        super().__init__(f"trial {lease.number}: the lease of attempt {lease.attempt} is void: {reason}")


class NotClaimableError(StudyError):
    """The trial is not free to be taken over."""

    def __init__(self, number: int, reason: str) -> None:
        self.number, self.reason = number, reason
        super().__init__(f"trial {number} cannot be taken over: {reason}")


def _listed(names: tuple[str, ...], limit: int = 12) -> str:
    shown = ", ".join(sorted(names)[:limit])
    return shown if len(names) <= limit else f"{shown}, ... ({len(names)} in all)"
