"""What the two views of the losses make of a space: which known rows are best, and which new ones promise most."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from automl.samplers.surrogate.acquisition import log_expected_improvement
from automl.samplers.surrogate.dimensions import Rows
from automl.samplers.surrogate.embedding import Embedding
from automl.samplers.surrogate.gaussian_process import Pairs, Posterior, fit, prior_for
from automl.samplers.surrogate.observations import Observations, observations
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
        lessons = _lessons(records)
        chosen = _best_and_some(len(lessons), KNOWN, rng)
        seen = observations(records, lessons[chosen])
        targets = _targets(records, lessons, chosen, seen)
        self._embedding = Embedding(records.dimensions, has_fidelity=seen.differ)
        rows = records.rows[seen.trials]
        points = self._embedding.points(rows, seen.fidelity)
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
        once = rows[: len(chosen)]
        full = self._embedding.points(once)
        means = np.array([posterior.mean(full) for posterior in self._posteriors])
        self._best = means.min(axis=1)
        self.ranked: Rows = once[means.mean(axis=0).argsort(kind="stable")]

    def promise(self, rows: Rows) -> NDArray[np.float64]:
        """The logarithm of the improvement that is expected of rows, in both views together."""
        points = self._embedding.points(rows)
        first, second = (
            log_expected_improvement(*posterior.mean_and_deviation(points), best)
            for posterior, best in zip(self._posteriors, self._best, strict=True)
        )
        return np.logaddexp(first, second)


def _lessons(records: Records) -> NDArray[np.intp]:
    """The trials that teach something: results, the best first, and what cannot be trained."""
    results = np.flatnonzero(records.lessons == Lesson.RESULT)
    results = results[records.losses[results].argsort(kind="stable")]
    bad = np.flatnonzero(records.lessons == Lesson.BAD)[-max(LEAST_BAD, len(results)) :]  # they crowd out no results
    return np.concatenate([results, bad])


def _targets(
    records: Records, lessons: NDArray[np.intp], chosen: NDArray[np.intp], seen: Observations
) -> NDArray[np.float64]:
    """Both views of what is seen of the chosen ones, among all that is known."""
    more = slice(len(chosen), None)
    losses = np.concatenate([records.losses[lessons], seen.losses[more]])
    is_bad = np.concatenate([records.lessons[lessons] == Lesson.BAD, seen.is_bad[more]])
    return two_views(losses, is_bad)[:, np.concatenate([chosen, np.arange(len(lessons), len(losses))])]


def _best_and_some(count: int, most: int, rng: "Generator") -> NDArray[np.intp]:
    """Places in an order: all of them, or the first half of what is allowed and as many of the rest."""
    if count <= most:
        return np.arange(count)
    rest = rng.choice(np.arange(most // 2, count), size=most - most // 2, replace=False)
    return np.concatenate([np.arange(most // 2), np.sort(rest)])
