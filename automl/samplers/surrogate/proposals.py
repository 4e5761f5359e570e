"""Where candidates come from: evolution around what seems best, draws from the whole space, steps to neighbours.

Sources: regularized evolution (Real et al. 2019, arXiv 1802.01548); mutated incumbents as candidates of an acquisition
as in BANANAS (White et al. 2021, arXiv 1910.11858); local search on the acquisition as in SMAC (Hutter et al. 2011).
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from automl.samplers.surrogate.dimensions import Dimensions, Rows

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["around_the_best", "near", "well_spread", "within_branch"]

ELITES, PARENTS = 8, 16
_SMALLEST, _LARGEST = 0.03, 0.4
"""Standard deviations of a mutation's steps, of which the logarithm is drawn between these."""
_MOST_NEIGHBOURS = 20
_FEW = 60


def well_spread(dimensions: Dimensions, others: Rows, rng: "Generator", *, count: int = 8) -> Rows:
    """A few drawn rows, the one that is farthest from all others first; a distance is the mean over the dimensions."""
    drawn = dimensions.drawn(count, rng)
    if not len(others):
        return drawn
    apart = np.zeros((count, len(others)))
    for column, dimension in enumerate(dimensions.all):
        mine, theirs = drawn[:, column, None], others[None, :, column]
        distance = (mine != theirs).astype(np.float64) if dimension.is_choice else np.abs(mine - theirs)
        apart += np.where(np.isnan(mine) & np.isnan(theirs), 0.0, np.where(np.isnan(mine - theirs), 1.0, distance))
    order = (-apart.min(axis=1)).argsort(kind="stable")
    return np.asarray(drawn[order])


def around_the_best(dimensions: Dimensions, ranked: Rows, rng: "Generator", *, count: int) -> Rows:
    """Half mutants of the best rows, a quarter children of two of them, a quarter drawn.

    Args:
        dimensions: of the space.
        ranked: what is known, the best first.
        rng: draws.
        count: how many.
    """
    elites, parents = ranked[:ELITES], ranked[:PARENTS]
    mutants = elites[rng.integers(len(elites), size=count // 2)]
    first, second = parents[rng.integers(len(parents), size=(2, count // 4))]
    crossed = np.where(rng.random(first.shape) < 0.5, first, second)
    return np.concatenate(
        [
            dimensions.mutated(mutants, rng.geometric(0.6, size=len(mutants)), _sigmas(len(mutants), rng), rng),
            dimensions.mutated(crossed, rng.integers(2, size=len(crossed)), _sigmas(len(crossed), rng), rng),
            dimensions.drawn(count - len(mutants) - len(crossed), rng),
        ]
    )


def within_branch(dimensions: Dimensions, ranked: Rows, rng: "Generator", *, count: int) -> Rows:
    """Rows of one branch of a conditional space, two thirds drawn, one third mutants of the best four there.

    A model may never look again at a branch that began badly; each has its turn this way.
    """
    gate = dimensions.gates[int(rng.integers(len(dimensions.gates)))]
    number = dimensions.all[gate].drawn(1, rng)[0]
    own = ranked[ranked[:, gate] == number][:4]
    drawn = dimensions.drawn(count * 2 // 3, rng)
    chosen = own[rng.integers(len(own), size=count - len(drawn))] if len(own) else drawn[:0]
    mutants = dimensions.mutated(chosen, rng.geometric(0.6, size=len(chosen)), _sigmas(len(chosen), rng), rng)
    rows = np.concatenate([drawn, mutants])
    rows[~np.isnan(rows[:, gate]), gate] = number  # a gate behind another gate may not be there
    return dimensions.settled(rows, rng)


def near(dimensions: Dimensions, centres: Rows, rng: "Generator", *, sigma: float) -> Rows:
    """Rows that are one change away from some, and small steps where single values are too near to each other.

    Args:
        dimensions: of the space.
        centres: where the steps begin.
        rng: draws.
        sigma: standard deviation of the small steps.
    """
    found = [dimensions.neighbours(centre, rng, most=_MOST_NEIGHBOURS) for centre in centres]
    if dimensions.fine.any():
        starts = centres[rng.integers(len(centres), size=_FEW)]
        found.append(dimensions.mutated(starts, rng.integers(1, 3, size=_FEW), np.full(_FEW, sigma), rng))
    return np.concatenate(found)


def _sigmas(count: int, rng: "Generator") -> NDArray[np.float64]:
    return np.exp(rng.uniform(np.log(_SMALLEST), np.log(_LARGEST), size=count))
