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
def kept_generators(device: torch.device | None = None) -> Iterator[None]:
    """Run a block, and leave the global generators of Python, NumPy and torch's CPU as they were.

    Args:
        device: if it is a GPU, its generator is left as it was, too.
    """
    python, numpy, torchs = random.getstate(), np.random.get_state(), torch.default_generator.get_state()
    gpu = torch.cuda.get_rng_state(device) if device is not None and device.type == "cuda" else None
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        torch.default_generator.set_state(torchs)
        if gpu is not None and device is not None:
            torch.cuda.set_rng_state(gpu, device)
