"""The random numbers of a training: every stream is a pure function of (purpose, seed, position).

Nothing is remembered between epochs, so a resumed training needs no stored generator, and no stream depends
on how often another one was asked.
"""

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

__all__ = ["Purpose", "random_generator", "seed_torch", "torch_seed"]


class Purpose(IntEnum):
    """What random numbers are drawn for; part of the key of a stream, so the numbers must never change."""

    WEIGHTS = 0
    """The first weights of the network; equal on all ranks."""
    ORDER = 1
    """The order of the training items in an epoch; position: the epoch."""
    AUGMENTATION = 2
    """The changes to the images of an epoch; position: the epoch."""
    LAYERS = 3
    """Dropout and other random layers; position: the epoch and the rank."""
    SPLIT = 4
    """Train, validation and test; position: the class."""
    MIXING = 5
    """Which items are mixed, and how; position: the epoch."""
    OPERATIONS = 6
    """RandAugment's operations on the images of an epoch; position: the epoch."""
    ERASING = 7
    """What the images of an epoch lose; position: the epoch."""
    ITEMS = 8
    """What a dataset draws when it is asked for an item; position: the epoch and the item's place in its order."""
    OWN = 9
    """A training in a person's own file; position: the finished epochs and the rank."""


def random_generator(purpose: Purpose, seed: int, *position: int) -> np.random.Generator:
    """Return a fresh generator for one purpose at one position (epoch, class, rank), counted from 0."""
    return np.random.Generator(np.random.PCG64(_sequence(purpose, seed, position)))


def torch_seed(purpose: Purpose, seed: int, *position: int) -> int:
    """Return the seed of torch's generator for one purpose at one position: an integer in [0, 2**63)."""
    return int(_sequence(purpose, seed, position).generate_state(1, np.uint64)[0]) >> 1


def seed_torch(seed: int, device: "torch.device") -> None:
    """Seed the global generators that layers on a device draw from."""
    import torch  # the rest of this module serves processes without torch

    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


def _sequence(purpose: Purpose, seed: int, position: tuple[int, ...]) -> np.random.SeedSequence:
    sign = 1 if seed < 0 else 0  # SeedSequence takes no negative words, and -1 must differ from 1
    return np.random.SeedSequence([int(purpose), sign, abs(seed), *position])
