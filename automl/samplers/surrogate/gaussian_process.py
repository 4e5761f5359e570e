"""A Gaussian process over few points, whose few hyperparameters are found anew for every proposal.

The kernel is Matern 5/2 over a weighted sum of squared distances, one weight for each dimension (Rasmussen and Williams
2006, equations 4.17 and 5.2). The hyperparameters are those of largest posterior density, found by iRprop- (Igel and
Huesken 2000) on their logarithms; the gradient (equation 5.9) needs the inverse of the kernel's matrix alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri

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
    """

    def __init__(self, distances: Array) -> None:
        self.count = distances.shape[1]
        self.first, self.second = np.triu_indices(self.count, 1)
        self.distances = np.ascontiguousarray(distances[:, self.first, self.second])


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
    correlation, slope = _matern(weights @ pairs.distances)
    kernel = np.zeros((pairs.count, pairs.count), order="F")
    kernel[pairs.first, pairs.second] = amplitude * correlation
    np.fill_diagonal(kernel, amplitude + noise)
    inverse = _inverse(kernel)
    alpha = inverse @ targets
    sensitivity = 0.5 * (alpha[pairs.first] * alpha[pairs.second] - inverse[pairs.first, pairs.second])
    trace = 0.5 * float(alpha @ alpha - np.trace(inverse))
    of_weights = 2.0 * amplitude * weights * (pairs.distances @ (sensitivity * slope))
    of_amplitude = amplitude * (2.0 * float(sensitivity @ correlation) + trace)
    return np.concatenate([of_weights, [of_amplitude, (noise - JITTER) * trace]])


def _matern(squared: Array) -> tuple[Array, Array]:
    """The correlation at squared distances, and its derivative there."""
    scaled = np.sqrt(5.0 * np.maximum(squared, 0.0))
    decay = np.exp(-scaled)
    return (1.0 + scaled + scaled * scaled / 3.0) * decay, (-5.0 / 6.0) * (1.0 + scaled) * decay


def _inverse(kernel: Array) -> Array:
    """The inverse of a positive definite matrix, of which the upper triangle is read."""
    factor, failed = dpotrf(kernel, lower=0, clean=0)
    if not failed:
        inverse, failed = dpotri(factor, lower=0)
    if failed:  # rounding; the pseudo-inverse is of the nearest matrix that has one
        return np.asarray(np.linalg.pinv(np.triu(kernel) + np.triu(kernel, 1).T, hermitian=True), dtype=np.float64)
    upper = np.triu(inverse, 1)
    return np.asarray(np.triu(inverse) + upper.T)


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
        inverse = self._inverse_of(observed, hyperparameters.noise)
        self._alpha = inverse @ targets
        self._observed, self._known, self._inverse = observed, observed, inverse
        if len(pending):
            self._known = np.concatenate([observed, pending * self._scale])
            self._inverse = self._inverse_of(self._known, hyperparameters.noise)

    def mean(self, points: Array) -> Array:
        """What is expected at embedded points."""
        return self._kernel(points * self._scale, self._observed) @ self._alpha

    def mean_and_deviation(self, points: Array) -> tuple[Array, Array]:
        """What is expected at embedded points, and its standard deviation."""
        kernel = self._kernel(points * self._scale, self._known)
        mean = kernel[:, : len(self._observed)] @ self._alpha
        variance = self._amplitude - np.einsum("ij,ij->i", kernel @ self._inverse, kernel)
        return mean, np.sqrt(np.maximum(variance, 1e-12))

    def _inverse_of(self, scaled: Array, noise: float) -> Array:
        kernel = self._kernel(scaled, scaled)
        np.fill_diagonal(kernel, self._amplitude + noise)
        return _inverse(np.asfortranarray(kernel))

    def _kernel(self, first: Array, second: Array) -> Array:
        squared = (first * first).sum(axis=1)[:, None] + (second * second).sum(axis=1) - 2.0 * (first @ second.T)
        return self._amplitude * _matern(squared)[0]
