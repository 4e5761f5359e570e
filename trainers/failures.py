"""What an error of a training means to people: a cause word and a sentence; nothing is raised or caught here."""

from dataclasses import dataclass

from trainers.errors import FailureCause, NetworkMemoryError, TrialError, full_disk, is_consequence, is_out_of_memory
from trainers.loader_errors import cuda_in_loader_worker

__all__ = ["Explained", "explain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """An error in words.

    Attributes:
        cause: the word that is stored on a trial.
        error: class of the exception that tells it best.
        message: its text, or advice.
        is_consequence: whether it only tells that another rank is gone.
        is_of_network: whether memory is too small for the network by itself, so that smaller batches do not help.
    """

    cause: FailureCause
    error: str
    message: str
    is_consequence: bool
    is_of_network: bool = False


def explain(error: BaseException) -> Explained:
    """Name the cause of an exception: a trainer's own errors know it, and some are known; the rest is the user's code.

    Args:
        error: what came out of a training.
    """
    reason = full_disk(error)
    shown = reason or error
    advice = cuda_in_loader_worker(error)
    message = advice or str(shown) or type(shown).__name__
    if isinstance(error, SystemExit):
        message = f"the training called sys.exit({error.code!r})"
    is_follow_up = is_consequence(error)
    cause: FailureCause = "user_error"
    if reason is not None:
        cause = "disk_full"
    elif isinstance(error, TrialError) and advice is None:
        cause = error.cause
    elif is_follow_up:
        cause = "rank_error"
    elif is_out_of_memory(error) and advice is None:
        cause = "oom"
    return Explained(
        cause=cause,
        error=type(shown).__name__,
        message=message,
        is_consequence=is_follow_up,
        is_of_network=isinstance(shown, NetworkMemoryError),
    )
