"""Rows as points whose weighted squared distances are what a kernel needs, so that many are computed in one product."""

import numpy as np
from numpy.typing import NDArray

from automl.samplers.surrogate.dimensions import Dimensions, Rows

__all__ = ["Embedding"]

_HALF = np.sqrt(0.5)
_ABSENT = np.array([0.5, np.sqrt(1.0 / 6.0)])
"""Where a number stands that is not there: its squared distance from one that is there is 1/4 on average."""


class Embedding:
    """Coordinates for the dimensions of a space.

    Two choices are at the squared distance 0 or 1, numbers at that of their positions. Where a choice comes several
    times, as on the edges of a cell, the share of each operation is a dimension of its own (level 0 of the kernel of Ru
    et al. 2021, arXiv 2006.07556). What is there and what is not are as far apart as two choices.

    Attributes:
        is_choice: which dimensions of the kernel are choices.
        dimension_of: the dimension of each coordinate.
    """

    def __init__(self, dimensions: Dimensions, *, has_fidelity: bool = False) -> None:
        self._dimensions = dimensions
        self._has_fidelity = has_fidelity
        shares = sum(len(dimensions.all[columns[0]].values) for columns in dimensions.cells) + has_fidelity
        self.is_choice = np.array([dimension.is_choice for dimension in dimensions.all] + [False] * shares)
        widths = [len(d.values) + 1 if d.is_choice else 2 for d in dimensions.all] + [1] * shares
        self.dimension_of = np.repeat(np.arange(len(widths)), widths)

    def points(self, rows: Rows, fidelity: NDArray[np.float64] | float = 1.0) -> NDArray[np.float64]:
        """The coordinates of rows.

        Args:
            rows: configurations.
            fidelity: how far they were trained, or would be: 1 is a full training.
        """
        columns = (
            self._choices(rows, at) if self.is_choice[at] else self._numbers(rows, at) for at in range(rows.shape[1])
        )
        last = [np.broadcast_to(fidelity, len(rows))[:, None]] if self._has_fidelity else []
        return np.concatenate([*columns, *self._shares(rows), *last], axis=1)

    def distances(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Squared distances of all pairs: dimension x point x point."""
        found = np.empty((len(self.is_choice), len(points), len(points)))
        for dimension in range(len(self.is_choice)):
            own = points[:, self.dimension_of == dimension]
            found[dimension] = ((own[:, None, :] - own[None, :, :]) ** 2).sum(axis=2)
        return found

    def _choices(self, rows: Rows, at: int) -> NDArray[np.float64]:
        count = len(self._dimensions.all[at].values)
        places = np.where(np.isnan(rows[:, at]), count, rows[:, at]).astype(np.intp)
        points: NDArray[np.float64] = _HALF * np.eye(count + 1)[places]
        return points

    def _numbers(self, rows: Rows, at: int) -> NDArray[np.float64]:
        is_there = ~np.isnan(rows[:, at])
        found = np.tile(_ABSENT, (len(rows), 1))
        found[is_there, 0], found[is_there, 1] = rows[is_there, at], 0.0
        return found

    def _shares(self, rows: Rows) -> list[NDArray[np.float64]]:
        return [
            (rows[:, columns, None] == np.arange(len(self._dimensions.all[columns[0]].values))).mean(axis=1)
            for columns in map(list, self._dimensions.cells)
        ]
