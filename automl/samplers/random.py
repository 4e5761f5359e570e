"""Random search: every parameter is drawn from its own range (Bergstra and Bengio 2012, JMLR 13)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from automl.samplers.base import Sampler
from search_spaces.configuration import Configuration
from search_spaces.space import SearchSpace
from studies.trial import Trial

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["RandomSampler"]


class RandomSampler(Sampler):
    """Draws independently of everything that was tried: the baseline every other method has to beat."""

    def suggest(self, space: SearchSpace, trials: Sequence[Trial], rng: "Generator") -> Configuration:
        """Draw one configuration."""
        return space.sample(rng)
