"""Builds a network, and looks ahead meanwhile: a large one is known as a whole before its weights take memory.

Small networks are built as if nobody looked: it takes no measurable time, and their constructors run once.
"""

import logging
import random
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.nn.parameter import is_lazy

from search_spaces.own_code import OWN_CODE_ERRORS, error_in_words
from trainers.errors import is_out_of_memory

__all__ = ["LARGE_BYTES", "build_looking_ahead", "hollow"]

logger = logging.getLogger(__name__)

LARGE_BYTES = 16 * 2**20
"""Weights of this size take longer to be drawn than the whole network takes to be built without memory (3 ms)."""


def build_looking_ahead(build: Callable[[], nn.Module], look: Callable[[nn.Module], None]) -> nn.Module:
    """Build a network; as soon as its weights exceed LARGE_BYTES, show it whole before the rest of it is built.

    The random numbers that the network is built from do not depend on whether somebody looks.

    Args:
        build: makes the network; is called once more for a large one, within torch's `meta` device.
        look: is given the network without memory for its weights, and raises where it is too large. It is not called
            for small networks, and for those that cannot be built so.
    """
    ahead = _LookAhead(build, look)
    handle = register_module_parameter_registration_hook(ahead)
    try:
        return build()
    except (RuntimeError, MemoryError) as error:
        if is_out_of_memory(error):  # one weight alone was too large, or copies of modules, which nobody registers
            ahead.look_once()
        raise
    finally:
        handle.remove()


def hollow(build: Callable[[], nn.Module]) -> nn.Module | None:
    """Build a network without memory for its weights; None for one that cannot be built so.

    Random states stay as they are.
    """
    try:
        with _kept_random_states(), warnings.catch_warnings(), torch.device("meta"):
            warnings.simplefilter("ignore")  # what a constructor does to values means nothing here
            return build()
    except OWN_CODE_ERRORS as error:  # the real one will tell
        logger.debug("network is not built without memory reason=%s", error_in_words(error))
        return None


class _LookAhead:
    """Counts the weights that one thread registers, and looks once they are many."""

    def __init__(self, build: Callable[[], nn.Module], look: Callable[[nn.Module], None]) -> None:
        self._build, self._look = build, look
        self._thread = threading.get_ident()
        self._size = 0
        self._has_looked = False

    def __call__(self, module: nn.Module, name: str, weight: nn.Parameter) -> None:
        if self._has_looked or threading.get_ident() != self._thread or is_lazy(weight):
            return
        self._size += weight.numel() * weight.element_size()
        if self._size > LARGE_BYTES:
            self.look_once()

    def look_once(self) -> None:
        """Show the whole network, unless that was done."""
        if self._has_looked:
            return
        self._has_looked = True
        network = hollow(self._build)
        if network is not None:
            self._look(network)


@contextmanager
def _kept_random_states() -> Iterator[None]:
    own, arrays = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        random.setstate(own)
        np.random.set_state(arrays)
