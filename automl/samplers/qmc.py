"""Points that fill the space evenly, whatever was found: a scrambled Sobol sequence.

Sources: Sobol 1967; scrambling as in Matousek 1998, "On the L2-discrepancy for anchored boxes", by SciPy. Evenly spread
points miss fewer regions than drawn ones, and the n-th one is known without the others, so that machines share a
sequence without talking.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from automl.randomness import study_generator
from automl.samplers.base import Sampler
from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.parameters import Parameter
from search_spaces.space import SearchSpace
from search_spaces.walks import NoValueLeftError, completed
from studies.trial import Trial

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["QmcSampler"]


class QmcSampler(Sampler):
    """Takes the point of the sequence that has the trial's number; each study has a scrambling of its own.

    A parameter that is not always there has its coordinate all the same.
    """

    def suggest(self, space: SearchSpace, trials: Sequence[Trial], rng: "Generator") -> Configuration:
        """Read each parameter's value off its coordinate: as large a share of all draws lies below it."""
        number = trials[-1].number + 1 if trials else 0
        shares = dict(zip(space.parameters, _point(len(space.parameters), number, rng), strict=True))

        def draw(name: str, left: Parameter, values: Mapping[str, JsonScalar]) -> JsonScalar:
            return left.quantile(shares[name])

        try:
            return completed(space.parameters, {}, draw)
        except NoValueLeftError:
            return space.sample(rng)  # bounds leave a parameter nothing there; a draw looks ahead


def _point(dimensions: int, number: int, rng: "Generator") -> list[float]:
    from scipy.stats.qmc import Sobol  # slow to import

    sequence = Sobol(dimensions, scramble=True, rng=study_generator(rng))
    if number:
        sequence.fast_forward(number)
    return [float(share) for share in sequence.random(1)[0]]
