"""Errors that cross the border of a process: pickle alone loses what they were raised from, and where."""

import pickle
import traceback
from collections.abc import Sequence
from itertools import pairwise

from trainers.errors import UserCodeError, causes

__all__ = ["packed", "unpacked"]


def packed(error: BaseException) -> list[BaseException]:
    """Return an error, and one after the other what it was raised from, as copies that can be pickled.

    The first one has the traceback of this process as a note. One that cannot be copied becomes a UserCodeError with
    its words.
    """
    text = "".join(traceback.format_exception(error))
    copies = [_copy(link) for link in causes(error)]
    copies[0].add_note(text)
    return copies


def unpacked(errors: Sequence[BaseException]) -> BaseException:
    """Return the first of the errors that `packed` returned, raised from the second one, and so on."""
    for error, reason in pairwise(errors):
        error.__cause__ = reason
    return errors[0]


def _copy(error: BaseException) -> BaseException:
    try:
        copy: BaseException = pickle.loads(pickle.dumps(error))
    except Exception:  # whatever a class of somebody else's does while it is copied
        copy = UserCodeError(f"{type(error).__name__}: {error}")
    return copy
