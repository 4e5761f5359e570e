"""What the two views of the losses make of a space: which known rows are best, and which new ones promise most."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from automl.samplers.surrogate.acquisition import log_expected_improvement
from automl.samplers.surrogate.dimensions import Rows
from automl.samplers.surrogate.embedding import Embedding
from automl.samplers.surrogate.gaussian_process import Pairs, Posterior, fit, prior_for
from automl.samplers.surrogate.records import Lesson, Records
from automl.samplers.surrogate.views import two_views

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["Model"]

FITTED, KNOWN, PENDING = 100, 250, 100
"""Rows that the hyperparameters are found from, that predictions rest on, and that are being trained, at most: more
trials cost no more."""
LEAST_BAD = 20


class Model:
    """Two Gaussian processes on one study.

    Args:
        records: what the trials teach; at least one result.
        rng: draws which rows are looked at where there are many.

    Attributes:
        ranked: the rows that predictions rest on, the one with the best expected loss first.
    """

    def __init__(self, records: Records, rng: "Generator") -> None:
        chosen, targets = _lessons(records, rng)
        self._embedding = Embedding(records.dimensions)
        rows = records.rows[chosen]
        points = self._embedding.points(rows)
        fitted = _best_and_some(len(rows), FITTED, rng)
        pairs = Pairs(self._embedding.distances(points[fitted]))
        prior = prior_for(self._embedding.is_choice)
        first = fit(pairs, targets[0, fitted], prior, prior.means, steps=20, first_step=0.3)
        second = fit(pairs, targets[1, fitted], prior, first.log_values, steps=8, first_step=0.15)
        pending = np.flatnonzero(records.lessons == Lesson.PENDING)[-PENDING:]
        expected = self._embedding.points(records.rows[pending])
        self._posteriors = [
            Posterior(points, self._embedding.dimension_of, target, found, expected)
            for target, found in zip(targets, (first, second), strict=True)
        ]
        means = np.array([posterior.mean(points) for posterior in self._posteriors])
        self._best = means.min(axis=1)
        self.ranked: Rows = rows[means.mean(axis=0).argsort(kind="stable")]

    def promise(self, rows: Rows) -> NDArray[np.float64]:
        """The logarithm of the improvement that is expected of rows, in both views together."""
        points = self._embedding.points(rows)
        first, second = (
            log_expected_improvement(*posterior.mean_and_deviation(points), best)
            for posterior, best in zip(self._posteriors, self._best, strict=True)
        )
        return np.logaddexp(first, second)


def _lessons(records: Records, rng: "Generator") -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The rows that predictions rest on, the best first, and both views of their losses, made of all results."""
    results = np.flatnonzero(records.lessons == Lesson.RESULT)
    results = results[records.losses[results].argsort(kind="stable")]
    bad = np.flatnonzero(records.lessons == Lesson.BAD)[-max(LEAST_BAD, len(results)) :]  # they crowd out no results
    lessons = np.concatenate([results, bad])
    targets = two_views(records.losses[lessons], np.arange(len(lessons)) >= len(results))
    chosen = _best_and_some(len(lessons), KNOWN, rng)
    return lessons[chosen], targets[:, chosen]


def _best_and_some(count: int, most: int, rng: "Generator") -> NDArray[np.intp]:
    """Places in an order: all of them, or the first half of what is allowed and as many of the rest."""
    if count <= most:
        return np.arange(count)
    rest = rng.choice(np.arange(most // 2, count), size=most - most // 2, replace=False)
    return np.concatenate([np.arange(most // 2), np.sort(rest)])
