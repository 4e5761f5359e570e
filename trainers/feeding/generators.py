"""The global generators that a person's own code draws from: seeded for it, and put back afterwards."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

__all__ = ["kept_generators", "seed_generators"]

_WORD = 0xFFFFFFFF


def seed_generators(seed: int) -> None:
    """Seed the global generators of Python, NumPy and torch's CPU.

    Args:
        seed: in [0, 2**64).
    """
    random.seed(seed)
    np.random.seed([seed & _WORD, seed >> 32])
    torch.default_generator.manual_seed(seed)


@contextmanager
def kept_generators() -> Iterator[None]:
    """Run a block, and leave the global generators of Python, NumPy and torch's CPU as they were."""
    python, numpy, torchs = random.getstate(), np.random.get_state(), torch.default_generator.get_state()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        torch.default_generator.set_state(torchs)
