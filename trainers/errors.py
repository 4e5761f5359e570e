"""Why a training can end badly: every error names the cause word that is stored on the trial."""

from typing import ClassVar, Literal, TypeAlias

__all__ = [
    "BadDataError",
    "FailureCause",
    "NonFiniteLossError",
    "RanksDivergedError",
    "TrialError",
    "UnknownTrainerError",
    "UserCodeError",
]

FailureCause: TypeAlias = Literal[
    "oom", "timeout", "non_finite", "lost", "rank_error", "bad_data", "user_error", "infeasible"
]


class TrialError(Exception):
    """Base of the errors that end one trial and never a search."""

    cause: ClassVar[FailureCause] = "rank_error"


class NonFiniteLossError(TrialError):
    """The loss or the objective became NaN or infinite."""

    cause = "non_finite"


class BadDataError(TrialError, ValueError):
    """The data cannot be trained on as they are."""

    cause = "bad_data"


class UserCodeError(TrialError):
    """A person's own model, metric or script did something that is not allowed."""

    cause = "user_error"


class RanksDivergedError(TrialError):
    """The ranks of one trial no longer hold equal weights."""

    cause = "rank_error"


class UnknownTrainerError(KeyError):
    """No trainer of that name exists."""

    def __str__(self) -> str:
        """Return the message without KeyError's quotes."""
        return str(self.args[0])
