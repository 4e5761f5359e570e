"""Why a training can end badly: every error names the cause word that is stored on the trial."""

import errno
from collections.abc import Iterator
from typing import ClassVar, Literal, TypeAlias

__all__ = [
    "ArtifactStoreError",
    "BadDataError",
    "DamagedCheckpointError",
    "DeviceMemoryError",
    "FailureCause",
    "InvalidTrainerError",
    "MistakeElsewhereError",
    "NetworkMemoryError",
    "NonFiniteLossError",
    "PeerFailedError",
    "RanksDivergedError",
    "TrialError",
    "UnknownTrainerError",
    "UnsupportedDeviceError",
    "UserCodeError",
    "causes",
    "full_disk",
    "is_consequence",
    "is_out_of_memory",
]

FailureCause: TypeAlias = Literal[
    "oom", "timeout", "non_finite", "lost", "rank_error", "bad_data", "user_error", "infeasible", "disk_full"
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
    """The ranks of one trial were not given the same, or no longer hold equal weights."""

    cause = "rank_error"


class PeerFailedError(TrialError):
    """Another rank of the same trial failed first; that rank's own error is the reason to show."""

    cause = "rank_error"


class DamagedCheckpointError(TrialError):
    """A checkpoint is missing, incomplete, altered, or belongs to another network."""

    cause = "rank_error"


class ArtifactStoreError(TrialError):
    """The store of the artifacts cannot be reached or refuses: no fault of the trial, which may be tried again."""

    cause = "lost"


class DeviceMemoryError(TrialError):
    """The network, its gradients and one micro-batch do not fit into the device's memory."""

    cause = "oom"


class NetworkMemoryError(DeviceMemoryError):
    """What a network needs by itself does not fit, however few items are computed at a time."""


class UnsupportedDeviceError(TrialError):
    """The device cannot compute as was asked: no fault of the trial, and every trial on it would end alike."""

    cause = "user_error"


class UnknownTrainerError(KeyError):
    """No trainer of that name exists."""

    def __str__(self) -> str:
        """Return the message without KeyError's quotes."""
        return str(self.args[0])


class InvalidTrainerError(TypeError):
    """What a name refers to is no trainer, or two trainers share one name."""


class MistakeElsewhereError(ValueError):
    """A mistake of something else than the setting that was being checked when it was found.

    Attributes:
        place: what is at fault, for the message, such as `own file` or `script`.
    """

    def __init__(self, place: str, message: str) -> None:
        """Keep the place apart from the sentence."""
        super().__init__(place, message)
        self.place = place

    def __str__(self) -> str:
        """Return the sentence without the place."""
        return str(self.args[1])


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error, and one after the other what it was raised from."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def full_disk(error: BaseException) -> OSError | None:
    """The error of a full disk, or of a quota used up, among what led to an error; None: it has another reason.

    Libraries put their own error in its place, as `torch.save` does.
    """
    return next(
        (link for link in causes(error) if isinstance(link, OSError) and link.errno in (errno.ENOSPC, errno.EDQUOT)),
        None,
    )


def is_consequence(error: BaseException) -> bool:
    """Whether an error only tells that another rank of the same trial is gone or has failed."""
    return isinstance(error, PeerFailedError) or any(sign in str(error).lower() for sign in _PEER_IS_GONE)


_PEER_IS_GONE = (
    "connection closed by peer",
    "connection reset",
    "broken pipe",
    "connection refused",
    "remote process exited",
)
"""What torch's process groups say on a rank whose peer has left: a consequence, not a cause."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that this process could not get the memory it asked for, of a device or of the machine."""
    if isinstance(error, MemoryError) or any(_is_torchs_own(kind) for kind in type(error).__mro__):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in _OUT_OF_MEMORY)


_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")
"""What torch says, in lower case, where it has no class for it."""


def _is_torchs_own(kind: type) -> bool:
    # By its name: torch itself takes a second to load, and need not be there.
    return kind.__name__ == "OutOfMemoryError" and kind.__module__.partition(".")[0] == "torch"
