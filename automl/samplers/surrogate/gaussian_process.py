"""A Gaussian process over few points, whose few hyperparameters are found anew for every proposal.

The kernel is Matern 5/2 over a weighted sum of squared distances, one weight for each dimension (Rasmussen and Williams
2006, equations 4.17 and 5.2). The hyperparameters are those of largest posterior density, found by iRprop- (Igel and
Huesken 2000) on their logarithms; the gradient (equation 5.9) needs the inverse of the kernel's matrix alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

__all__ = ["Hyperparameters", "Pairs", "Posterior", "Prior", "fit", "prior_for"]

Array = NDArray[np.float64]

JITTER = 1e-5
_LEAST_STEP, _LARGEST_STEP = 1e-3, 1.0


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """Logarithms of the weights of all dimensions, of the amplitude, and of the noise's variance."""

    log_values: Array

    @property
    def weights(self) -> Array:
        """How much a squared distance of 1 in each dimension counts."""
        return np.exp(self.log_values[:-2])

    @property
    def amplitude(self) -> float:
        """Variance of the function before anything is known of it."""
        return float(np.exp(self.log_values[-2]))

    @property
    def noise(self) -> float:
        """Variance of what is observed around the function, and a little for the sake of the arithmetic."""
        return float(np.exp(self.log_values[-1])) + JITTER


@dataclass(frozen=True, slots=True)
class Prior:
    """Independent normal densities of the logarithms of the hyperparameters."""

    means: Array
    deviations: Array


def prior_for(is_choice: Sequence[bool] | NDArray[np.bool_]) -> Prior:
    """The prior for dimensions that are choices (distance 0 or 1) or positions in [0, 1].

    Positions have six times the weight, as two of them are seldom 1 apart; more dimensions have less weight each.
    """
    choices = np.asarray(is_choice, dtype=bool)
    root = np.sqrt(len(choices))
    weights = np.where(choices, np.log(1.0 / root), np.log(6.0 / root))
    means = np.concatenate([weights, [np.log(0.7), np.log(0.02)]])
    return Prior(means, np.concatenate([np.full(len(choices), 1.2), [1.0, 1.5]]))


class Pairs:
    """The squared distances of all pairs of some points, each dimension by itself, for every fit to these points.

    Args:
        distances: dimension x point x point.

    Attributes:
        count: points.
        places: of the pairs in a square matrix, which is stored column by column.
        distances: dimension x pair.
    """

    def __init__(self, distances: Array) -> None:
        self.count = distances.shape[1]
        first, second = np.triu_indices(self.count, 1)
        self.places = second * self.count + first
        self.distances = np.ascontiguousarray(distances[:, first, second])


def fit(pairs: Pairs, targets: Array, prior: Prior, start: Array, *, steps: int, first_step: float) -> Hyperparameters:
    """Return the hyperparameters where their posterior density is about largest.

    Args:
        pairs: of the points.
        targets: what was observed there, of mean 0.
        prior: of the hyperparameters.
        start: logarithms to begin with.
        steps: of iRprop-.
        first_step: how far the first one goes, in each logarithm.
    """
    values, step, before = start.copy(), np.full(len(start), first_step), np.zeros(len(start))
    for _ in range(steps):
        gradient = _gradient(pairs, targets, Hyperparameters(values)) - (values - prior.means) / prior.deviations**2
        turn = gradient * before
        step = np.clip(
            np.where(turn > 0.0, 1.2 * step, np.where(turn < 0.0, 0.5 * step, step)), _LEAST_STEP, _LARGEST_STEP
        )
        gradient[turn < 0.0] = 0.0
        values = values + np.sign(gradient) * step
        before = gradient
    return Hyperparameters(values)


def _gradient(pairs: Pairs, targets: Array, given: Hyperparameters) -> Array:
    """The gradient of the log marginal likelihood with respect to the logarithms of the hyperparameters."""
    weights, amplitude, noise = given.weights, given.amplitude, given.noise
    scaled, decay = _scaled(weights @ pairs.distances)
    correlation = _correlation(scaled, decay)
    slope = (-5.0 / 6.0) * (1.0 + scaled) * decay
    kernel = np.zeros(pairs.count * pairs.count)
    kernel[pairs.places] = amplitude * correlation
    kernel[:: pairs.count + 1] = amplitude + noise
    factor = _factor(kernel.reshape(pairs.count, pairs.count, order="F"))
    inverse, _ = dpotri(factor, lower=0)  # its upper triangle, which is all that is read below
    alpha, _ = dpotrs(factor, targets, lower=0)
    sensitivity = 0.5 * (np.outer(alpha, alpha) - inverse.T).take(pairs.places)
    trace = 0.5 * float(alpha @ alpha - np.trace(inverse))
    of_weights = 2.0 * amplitude * weights * (pairs.distances @ (sensitivity * slope))
    of_amplitude = amplitude * (2.0 * float(sensitivity @ correlation) + trace)
    return np.concatenate([of_weights, [of_amplitude, (noise - JITTER) * trace]])


def _scaled(squared: Array) -> tuple[Array, Array]:
    """Distances from squared ones in the kernel's scale, and how the kernel decays with them."""
    scaled = np.maximum(squared, 0.0)
    scaled *= 5.0
    np.sqrt(scaled, out=scaled)
    return scaled, np.exp(-scaled)


def _correlation(scaled: Array, decay: Array) -> Array:
    """Matern 5/2: (1 + s + s^2 / 3) e^-s."""
    found = scaled * (1.0 / 3.0)
    found += 1.0
    found *= scaled
    found += 1.0
    found *= decay
    return found


def _factor(kernel: Array) -> Array:
    """The upper Cholesky factor of a kernel's matrix, of which the upper triangle is read.

    Where rounding has made the matrix indefinite, as much as it takes is added to its diagonal.
    """
    factor, failed = dpotrf(kernel, lower=0, clean=0)
    extra = JITTER * float(kernel[0, 0])
    while failed:
        extra *= 10.0
        factor, failed = dpotrf(kernel + extra * np.eye(len(kernel)), lower=0, clean=0)
    return np.asarray(factor, dtype=np.float64)


class Posterior:
    """What is known of the function once points were observed.

    Args:
        points: embedded: row x coordinate.
        dimension_of: the dimension of each coordinate.
        targets: what was observed.
        hyperparameters: of the kernel.
        pending: embedded points whose value is not known yet; it is taken to be what is expected there, so that the
            mean stays and the variance around them shrinks ("kriging believer", Ginsbourger et al. 2010).
    """

    def __init__(
        self,
        points: Array,
        dimension_of: NDArray[np.intp],
        targets: Array,
        hyperparameters: Hyperparameters,
        pending: Array,
    ) -> None:
        self._scale = np.sqrt(hyperparameters.weights)[dimension_of]
        self._amplitude = hyperparameters.amplitude
        observed = points * self._scale
        factor = self._factor_of(observed, hyperparameters.noise)
        self._alpha, _ = dpotrs(factor, targets, lower=0)
        self._observed, self._known, self._factor = observed, observed, factor
        if len(pending):
            self._known = np.concatenate([observed, pending * self._scale])
            self._factor = self._factor_of(self._known, hyperparameters.noise)

    def mean(self, points: Array) -> Array:
        """What is expected at embedded points."""
        return np.asarray(self._kernel(self._observed, points * self._scale).T @ self._alpha)

    def mean_and_deviation(self, points: Array) -> tuple[Array, Array]:
        """What is expected at embedded points, and its standard deviation."""
        kernel = self._kernel(self._known, points * self._scale)
        mean = self._alpha @ kernel[: len(self._observed)]
        explained = dtrsm(1.0, self._factor, kernel, lower=0, trans_a=1)
        variance = self._amplitude - np.einsum("ij,ij->j", explained, explained)
        return mean, np.sqrt(np.maximum(variance, 1e-12))

    def _factor_of(self, scaled: Array, noise: float) -> Array:
        kernel = self._kernel(scaled, scaled)
        np.fill_diagonal(kernel, self._amplitude + noise)
        return _factor(kernel)

    def _kernel(self, first: Array, second: Array) -> Array:
        """Covariances, row of `first` x row of `second`, in Fortran's order as LAPACK wants them."""
        squared = (second @ (-2.0 * first).T).T
        squared += (first * first).sum(axis=1)[:, None]
        squared += (second * second).sum(axis=1)
        kernel = _correlation(*_scaled(squared))
        kernel *= self._amplitude
        return kernel
