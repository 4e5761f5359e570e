"""Where every random number of a study comes from: the study's seed and the trial's number."""

import numpy as np

__all__ = ["suggestion_generator", "training_seed"]

_SUGGEST, _TRAIN = 0, 1


def suggestion_generator(study_seed: int, number: int) -> np.random.Generator:
    """The generator with which the configuration of trial `number` is proposed.

    It depends on nothing else, so that a resumed study continues the sequence of an unbroken one.
    """
    return np.random.default_rng(np.random.SeedSequence(entropy=study_seed, spawn_key=(number, _SUGGEST)))


def training_seed(study_seed: int, number: int) -> int:
    """The seed of weights, data order, augmentation and dropout of trial `number`; 0 to 2**31 - 1."""
    sequence = np.random.SeedSequence(entropy=study_seed, spawn_key=(number, _TRAIN))
    return int(sequence.generate_state(1)[0] >> 1)
