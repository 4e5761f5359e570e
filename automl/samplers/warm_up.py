"""A large first draw of networks, of which those are trained that look most promising untrained.

Source: Abdelfattah et al. 2021, "Zero-Cost Proxies for Lightweight NAS" (arXiv 2101.08134), section 4.2: evolution
that begins with the best of thousands by a score which needs no training.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from automl.randomness import study_generator
from search_spaces.configuration import Configuration
from search_spaces.errors import SpaceRuleError
from search_spaces.space import SearchSpace

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["WarmUp"]


class WarmUp:
    """The same ranked draws for every proposal of a study, on every machine.

    Args:
        draws: how many, at least 1.
    """

    def __init__(self, draws: int) -> None:
        self._draws = draws
        self._of: tuple[SearchSpace, object] | None = None
        self._ranked: Sequence[Configuration] = ()

    def ranked(
        self, space: SearchSpace, score: Callable[[Configuration], float], rng: "Generator"
    ) -> Sequence[Configuration]:
        """The draws that differ from each other, the most promising first.

        Args:
            space: where they are drawn.
            score: of a network; larger is more promising.
            rng: of a proposal of the study.
        """
        own = study_generator(rng)
        mark = (space, str(own.bit_generator.state))
        if self._of != mark:
            drawn = {_key(space, each): each for each in (space.sample(own) for _ in range(self._draws))}
            buildable = [each for each in drawn.values() if space.refusal(each) is None]
            scores = {each: score(each) for each in buildable}
            self._ranked = sorted(buildable, key=lambda each: -scores[each])
            self._of = mark
        return self._ranked


def _key(space: SearchSpace, configuration: Configuration) -> str:
    try:
        return space.key(configuration)
    except SpaceRuleError:
        return repr(configuration)  # the scheduler says what is wrong with it
