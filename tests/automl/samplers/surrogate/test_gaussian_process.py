"""The models against direct formulas: gradient, posterior, improvement, and the views of the losses."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import norm

from automl.samplers.surrogate.acquisition import log_expected_improvement
from automl.samplers.surrogate.gaussian_process import (
    Hyperparameters,
    Pairs,
    Posterior,
    _gradient,
    fit,
    prior_for,
)
from automl.samplers.surrogate.views import two_views

Array = NDArray[np.float64]
POINTS = np.random.default_rng(0).random((12, 3))
TARGETS = np.sin(5.0 * POINTS[:, 0]) + POINTS[:, 1] - 1.0
DISTANCES = ((POINTS[:, None, :] - POINTS[None, :, :]) ** 2).transpose(2, 0, 1)
GIVEN = Hyperparameters(np.log(np.array([4.0, 1.0, 0.3, 0.8, 0.05])))


def kernel(given: Hyperparameters, distances: Array) -> Array:
    r = np.sqrt(np.einsum("j,jab->ab", given.weights, distances))
    return np.asarray(given.amplitude * (1.0 + np.sqrt(5.0) * r + 5.0 / 3.0 * r * r) * np.exp(-np.sqrt(5.0) * r))


def log_likelihood(given: Hyperparameters) -> float:
    covariance = kernel(given, DISTANCES) + given.noise * np.eye(len(POINTS))
    _, log_determinant = np.linalg.slogdet(covariance)
    return float(-0.5 * (TARGETS @ np.linalg.solve(covariance, TARGETS) + log_determinant))


def test_gradient_is_that_of_finite_differences() -> None:
    found = _gradient(Pairs(DISTANCES), TARGETS, GIVEN)
    for at in range(5):
        step = np.zeros(5)
        step[at] = 1e-5
        above, below = (Hyperparameters(GIVEN.log_values + sign * step) for sign in (1.0, -1.0))
        assert found[at] == pytest.approx((log_likelihood(above) - log_likelihood(below)) / 2e-5, rel=1e-4, abs=1e-6)


def test_fit_finds_which_dimension_matters() -> None:
    prior = prior_for([False] * 3)
    found = fit(Pairs(DISTANCES), TARGETS, prior, prior.means, steps=40, first_step=0.3)
    assert found.weights[0] > found.weights[1] > found.weights[2]
    assert log_likelihood(found) > log_likelihood(Hyperparameters(prior.means))


def test_posterior_is_that_of_the_direct_formula() -> None:
    new = np.random.default_rng(1).random((5, 3))
    covariance = kernel(GIVEN, DISTANCES) + GIVEN.noise * np.eye(len(POINTS))
    across = kernel(GIVEN, ((new[:, None, :] - POINTS[None, :, :]) ** 2).transpose(2, 0, 1))
    mean = across @ np.linalg.solve(covariance, TARGETS)
    variance = GIVEN.amplitude - np.einsum("ij,ji->i", across, np.linalg.solve(covariance, across.T))
    posterior = Posterior(POINTS, np.arange(3), TARGETS, GIVEN, POINTS[:0])
    found_mean, found_deviation = posterior.mean_and_deviation(new)
    np.testing.assert_allclose(found_mean, mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found_deviation**2, variance, rtol=1e-6, atol=1e-8)


def test_pending_point_leaves_the_mean_and_takes_away_its_uncertainty() -> None:
    pending = np.array([[0.9, 0.1, 0.9]])
    before = Posterior(POINTS, np.arange(3), TARGETS, GIVEN, POINTS[:0])
    after = Posterior(POINTS, np.arange(3), TARGETS, GIVEN, pending)
    (mean, deviation), (kept, smaller) = before.mean_and_deviation(pending), after.mean_and_deviation(pending)
    assert kept == pytest.approx(mean)
    assert smaller[0] < 0.8 * deviation[0]


@pytest.mark.parametrize("mean", [-1.0, 0.0, 1.0, 3.0, 6.0])
def test_expected_improvement_is_the_integral(mean: float) -> None:
    def improvement(value: float) -> float:
        return float((0.5 - value) * norm.pdf(value, mean, 0.8))

    integral, _ = quad(improvement, mean - 12.0, 0.5, epsabs=1e-14)
    found = log_expected_improvement(np.array([mean]), np.array([0.8]), 0.5)
    assert found[0] == pytest.approx(np.log(integral), rel=1e-3)


def test_improvement_far_below_stays_finite_and_in_order() -> None:
    means = np.linspace(-5.0, 60.0, 400)
    found = log_expected_improvement(means, np.ones(400), 0.0)
    assert np.isfinite(found).all()
    assert (np.diff(found) < 0.0).all()


def test_views_keep_the_order_and_do_not_see_the_scale_of_outliers() -> None:
    losses = np.array([3.0, 1.0, 1e6, 2.0, 2.0])
    ranks, gaps = two_views(losses, np.zeros(5, dtype=bool))
    for view in (ranks, gaps):
        assert view.mean() == pytest.approx(0.0, abs=1e-12)
        assert view.std() == pytest.approx(1.0)
        assert view[1] < view[3] == view[4] < view[0] < view[2]
    np.testing.assert_allclose(ranks, two_views(np.array([3.0, 1.0, 4.0, 2.0, 2.0]), np.zeros(5, dtype=bool))[0])


def test_what_cannot_be_trained_is_as_bad_as_the_worst() -> None:
    views = two_views(np.array([1.0, 2.0, 3.0, np.inf]), np.array([False, False, False, True]))
    np.testing.assert_array_equal(views[:, 3], views[:, 2])


@pytest.mark.parametrize("losses", [[1.0], [2.0, 2.0, 2.0], [0.0, 0.0, 0.0, 5.0]])
def test_views_of_equal_losses_are_finite(losses: list[float]) -> None:
    assert np.isfinite(two_views(np.array(losses), np.zeros(len(losses), dtype=bool))).all()
