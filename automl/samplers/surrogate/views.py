"""Two views of the same losses, so that neither an odd scale nor a plateau misleads a model of them.

Sources: ranks as normal quantiles as in Salinas, Shen and Perrone 2020 (arXiv 1909.13595); several output transforms as
in HEBO, Cowen-Rivers et al. 2022 (arXiv 2012.03826).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

__all__ = ["two_views"]

_STEEPNESS = 3.0
"""How much more the second view looks at the best losses than at those beyond the median."""


def two_views(losses: NDArray[np.float64], is_bad: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return targets of two models, each of mean 0 and variance 1 over the losses that are known.

    Args:
        losses: smaller is better; finite where `is_bad` is not set.
        is_bad: configurations that cannot be trained; they are as bad as the worst loss.

    Returns:
        Two rows: quantiles of the normal distribution at the ranks, and the logarithm of the distance from the best.
    """
    known = losses[~is_bad]
    if not len(known):
        return np.zeros((2, len(losses)))
    views = np.array([_standardised(_quantiles(known)), _standardised(_log_gaps(known))])
    found = np.empty((2, len(losses)))
    found[:, ~is_bad] = views
    found[:, is_bad] = views.max(axis=1, keepdims=True)
    return found


def _quantiles(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    _, place, count = np.unique(losses, return_inverse=True, return_counts=True)
    average_ranks = np.cumsum(count) - (count + 1) / 2
    return np.asarray(ndtri((average_ranks[place] + 0.5) / len(losses)))


def _log_gaps(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    gaps = losses - losses.min()
    scale = np.median(gaps) or gaps.mean()  # most may be the best
    return np.asarray(np.log1p(_STEEPNESS * gaps / scale)) if scale > 0.0 else gaps


def _standardised(targets: NDArray[np.float64]) -> NDArray[np.float64]:
    spread = float(targets.std())
    if spread == 0.0:
        return np.zeros_like(targets)
    standard: NDArray[np.float64] = (targets - targets.mean()) / spread
    return standard
