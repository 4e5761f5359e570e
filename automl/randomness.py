"""Where every random number of a study comes from: the study's seed and the trial's number."""

import numpy as np

__all__ = ["study_generator", "suggestion_generator", "training_seed"]

_SUGGEST, _TRAIN, _STUDY = 0, 1, 2


def suggestion_generator(study_seed: int, number: int) -> np.random.Generator:
    """The generator with which the configuration of trial `number` is proposed.

    It depends on nothing else, so that a resumed study continues the sequence of an unbroken one.
    """
    return np.random.default_rng(np.random.SeedSequence(entropy=study_seed, spawn_key=(number, _SUGGEST)))


def study_generator(rng: np.random.Generator) -> np.random.Generator:
    """A generator that is the same for all proposals of a study, for methods whose proposals belong together.

    Args:
        rng: the one of a single proposal, of which nothing is drawn.
    """
    sequence = rng.bit_generator.seed_seq
    if not isinstance(sequence, np.random.SeedSequence):
        raise TypeError(f"the generator of a proposal must come from a seed, not from {type(sequence).__name__}")
    return np.random.default_rng(np.random.SeedSequence(entropy=sequence.entropy, spawn_key=(_STUDY,)))


def training_seed(study_seed: int, number: int) -> int:
    """The seed of weights, data order, augmentation and dropout of trial `number`; 0 to 2**31 - 1."""
    sequence = np.random.SeedSequence(entropy=study_seed, spawn_key=(number, _TRAIN))
    return int(sequence.generate_state(1)[0] >> 1)
