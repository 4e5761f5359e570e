"""Linear algebra in one thread: on matrices of a few hundred rows more threads only wait for each other.

They would also take the cores of trainings that run beside the proposals.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

__all__ = ["one_thread"]

_held = threading.RLock()  # the limits are the process's


@contextmanager
def one_thread() -> Iterator[None]:
    """Let NumPy, SciPy and torch, those of them that are loaded by now, compute in one thread."""
    with _held, _controller("torch" in sys.modules).limit(limits=1):
        yield


@cache
def _controller(has_torch: bool) -> ThreadpoolController:
    """Looks for the libraries that are loaded now, which takes a while."""
    return ThreadpoolController()
