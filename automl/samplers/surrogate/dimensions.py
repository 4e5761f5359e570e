"""Configurations as rows of numbers, on which many candidates are drawn and changed at once.

A row has one number for each parameter that has more than one value: the place of a choice, or for a number (and an
ordered choice) its position between 0.0 and 1.0 on the scale that is sampled. NaN: the parameter is not there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from search_spaces.bounds import Bound
from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Categorical, Parameter
from search_spaces.ranges import is_number
from search_spaces.space import SearchSpace

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["Dimension", "Dimensions", "Rows"]

Rows: TypeAlias = NDArray[np.float64]
"""One configuration a row, one dimension a column."""

MOST_ON_GRID = 1000
"""Values of a number up to which they are told apart one by one."""
COARSE = 20
"""Values of a number up to which a step to the next one is a step worth trying."""
_SAME = 1e-9


@dataclass(frozen=True, eq=False)
class Dimension:
    """One parameter as a column.

    Attributes:
        name: the parameter's.
        parameter: the parameter.
        grid: the positions of its values in ascending order; None: there are too many, or infinitely many.
        values: the values at these positions; of a choice, its choices.
        when: column of a parent -> the numbers with which this parameter may be there.
    """

    name: str
    parameter: Parameter
    grid: NDArray[np.float64] | None
    values: Sequence[JsonScalar]
    when: Mapping[int, NDArray[np.float64]]

    @cached_property
    def is_choice(self) -> bool:
        """Whether all values are equally far from each other."""
        return isinstance(self.parameter, Categorical) and not self.parameter.ordered

    @cached_property
    def is_fine(self) -> bool:
        """Whether the next value is too near to be worth trying by itself."""
        return not self.is_choice and (self.grid is None or len(self.grid) > COARSE)

    def number(self, value: JsonScalar) -> float:
        """The number of an allowed value."""
        if isinstance(self.parameter, Categorical):
            place = self.parameter.encoded(value)
            return place if self.is_choice else place / (len(self.values) - 1)
        return float(self.snapped(np.array([self.parameter.position(value)]))[0])

    def value(self, number: float) -> JsonScalar:
        """The value that a number stands for."""
        if self.is_choice:
            return self.values[int(number)]
        if self.grid is not None:
            return self.values[int(np.abs(self.grid - number).argmin())]
        assert not isinstance(self.parameter, Categorical)
        return self.parameter.at(number)

    def snapped(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The nearest numbers that stand for a value."""
        if self.grid is None or self.is_choice:
            return numbers
        return self.grid[np.searchsorted((self.grid[1:] + self.grid[:-1]) / 2, numbers)]

    def drawn(self, count: int, rng: "Generator") -> NDArray[np.float64]:
        """Numbers of values that are equally likely on the scale that is sampled."""
        if self.is_choice:
            return rng.integers(len(self.values), size=count).astype(np.float64)
        if self.grid is None:
            return rng.random(count)
        # Half a step more at both ends, or the first and the last value would come half as often.
        low, high = self.grid[0] - np.diff(self.grid[:2]) / 2, self.grid[-1] + np.diff(self.grid[-2:]) / 2
        return self.snapped(low + (high - low) * rng.random(count))

    def changed(
        self, numbers: NDArray[np.float64], sigmas: NDArray[np.float64], rng: "Generator"
    ) -> NDArray[np.float64]:
        """Other numbers: any other choice, or a normal step, mirrored at the ends, on a grid at least to the next one.

        Args:
            numbers: where they are now.
            sigmas: standard deviations of the steps.
            rng: draws.
        """
        if self.is_choice:
            others = rng.integers(1, len(self.values), size=len(numbers))
            return (numbers + others) % len(self.values)
        moved = np.abs(numbers + sigmas * rng.standard_normal(len(numbers))) % 2.0
        moved = self.snapped(np.where(moved > 1.0, 2.0 - moved, moved))
        if self.grid is None:
            return moved
        places = np.searchsorted(self.grid, numbers - 1e-12)
        up = rng.random(len(numbers)) < 0.5
        nexts = places + np.where((up & (places < len(self.grid) - 1)) | (places == 0), 1, -1)
        return np.where(moved == numbers, self.grid[np.minimum(nexts, len(self.grid) - 1)], moved)

    def amounts(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values of numbers; NaN where there is none, and of choices that are no numbers."""
        if isinstance(self.parameter, Categorical):
            return np.array([np.nan if np.isnan(number) else _amount(self.value(number)) for number in numbers])
        low, high = self.parameter.ends
        if self.parameter.log:
            return low * (high / low) ** numbers
        return low + numbers * (high - low)

    def moved_between(
        self, numbers: NDArray[np.float64], least: NDArray[np.float64], most: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The nearest numbers whose values are within bounds.

        Args:
            numbers: any.
            least: smallest values; NaN: the parameter's own.
            most: largest values; likewise.
        """
        assert not isinstance(self.parameter, Categorical)
        low, high = (
            self._positions(np.where(np.isnan(end), own, end))
            for end, own in zip((least, most), self.parameter.ends, strict=True)
        )
        if self.grid is None:
            return np.clip(numbers, low, high)
        first = np.searchsorted(self.grid, low - _SAME)
        last = np.searchsorted(self.grid, high + _SAME, side="right") - 1
        places = np.clip(np.searchsorted(self.grid, np.nan_to_num(numbers) - _SAME), first, last)
        return np.where(np.isnan(numbers), np.nan, self.grid[np.clip(places, 0, len(self.grid) - 1)])

    def _positions(self, amounts: NDArray[np.float64]) -> NDArray[np.float64]:
        assert not isinstance(self.parameter, Categorical)
        low, high = self.parameter.ends
        kept = np.clip(amounts, low, high)
        return np.log(kept / low) / np.log(high / low) if self.parameter.log else (kept - low) / (high - low)

    def nearby(self, number: float) -> NDArray[np.float64]:
        """The numbers one change away: all other choices, or the next values on a grid."""
        if self.is_choice:
            return np.delete(np.arange(len(self.values), dtype=np.float64), int(number))
        if self.grid is None:
            return np.empty(0)
        place = int(np.abs(self.grid - number).argmin())
        return self.grid[[other for other in (place - 1, place + 1) if 0 <= other < len(self.grid)]]


def _amount(value: JsonScalar) -> float:
    return float(value) if is_number(value) else np.nan


class Dimensions:
    """All columns of a space.

    Args:
        space: what is searched; it has a parameter with a second value.
    """

    def __init__(self, space: SearchSpace) -> None:
        self.space = space
        self.all: list[Dimension] = []
        self._columns: dict[str, int] = {}
        self._constants: dict[str, JsonScalar] = {}
        for name, parameter in space.parameters.items():
            if parameter.size() == 1:
                self._constants[name] = next(iter(parameter.values()))
            else:
                self.all.append(self._dimension(name, parameter))
                self._columns[name] = len(self.all) - 1
        self._bounded = [column for column, dimension in enumerate(self.all) if dimension.parameter.is_bounded]

    def _dimension(self, name: str, parameter: Parameter) -> Dimension:
        """The next column; what it depends on is a column before it, or has one value, which was seen to already."""
        when = {
            self._columns[parent]: np.array([self.all[self._columns[parent]].number(value) for value in allowed])
            for parent, allowed in parameter.condition.items()
            if parent in self._columns
        }
        size = parameter.size()
        if size is None or (size > MOST_ON_GRID and not isinstance(parameter, Categorical)):
            return Dimension(name=name, parameter=parameter, grid=None, values=(), when=when)
        values = tuple(parameter.values())
        if isinstance(parameter, Categorical):
            grid = np.linspace(0.0, 1.0, size)
        else:
            grid = np.array([parameter.position(value) for value in values])
        return Dimension(name=name, parameter=parameter, grid=grid, values=values, when=when)

    def __len__(self) -> int:
        return len(self.all)

    @cached_property
    def gates(self) -> Sequence[int]:
        """The columns on whose numbers it depends whether others are there."""
        return sorted({column for dimension in self.all for column in dimension.when})

    @cached_property
    def fine(self) -> NDArray[np.bool_]:
        """Which columns are `Dimension.is_fine`."""
        return np.array([dimension.is_fine for dimension in self.all])

    @cached_property
    def cells(self) -> Sequence[Sequence[int]]:
        """Columns of choices that are the same three times and more often, such as the operations on a cell's edges."""
        groups: dict[tuple[JsonScalar, ...], list[int]] = {}
        for column, dimension in enumerate(self.all):
            if dimension.is_choice:
                groups.setdefault(tuple(dimension.values), []).append(column)
        return [columns for columns in groups.values() if len(columns) >= 3]

    def row(self, configuration: Mapping[str, JsonScalar]) -> Rows:
        """The row of a valid configuration."""
        return np.array(
            [
                dimension.number(configuration[dimension.name]) if dimension.name in configuration else np.nan
                for dimension in self.all
            ]
        )

    def part(self, row: Rows) -> dict[str, JsonScalar]:
        """The values of a row; `SearchSpace.complete` adds what has one value only."""
        pairs = zip(self.all, row, strict=True)
        return {dimension.name: dimension.value(number) for dimension, number in pairs if not np.isnan(number)}

    def drawn(self, count: int, rng: "Generator") -> Rows:
        """Rows that are drawn at random."""
        return self.settled(np.column_stack([dimension.drawn(count, rng) for dimension in self.all]), rng)

    def mutated(self, rows: Rows, changes: NDArray[np.int64], sigmas: NDArray[np.float64], rng: "Generator") -> Rows:
        """Rows that differ from the given ones.

        Args:
            rows: where the changes begin.
            changes: how many numbers of each row change, as far as it has so many.
            sigmas: standard deviation of the steps of each row.
            rng: draws.
        """
        order = np.where(np.isnan(rows), np.inf, rng.random(rows.shape)).argsort(axis=1).argsort(axis=1)
        chosen = (order < changes[:, None]) & ~np.isnan(rows)
        children = rows.copy()
        for column, dimension in enumerate(self.all):
            of = np.flatnonzero(chosen[:, column])
            children[of, column] = dimension.changed(rows[of, column], sigmas[of], rng)
        return self.settled(children, rng)

    def neighbours(self, row: Rows, rng: "Generator", *, most: int) -> Rows:
        """Rows that differ from one in one number; of a column with more than `most` others some are drawn."""
        found = []
        for column, dimension in enumerate(self.all):
            numbers = np.empty(0) if np.isnan(row[column]) else dimension.nearby(row[column])
            if len(numbers) > most:
                numbers = rng.choice(numbers, size=most, replace=False)
            changed = np.repeat(row[None, :], len(numbers), axis=0)
            changed[:, column] = numbers
            found.append(changed)
        return self.settled(np.concatenate(found), rng)

    def settled(self, rows: Rows, rng: "Generator") -> Rows:
        """The rows with what their numbers ask for: parameters that are there drawn, others left out, bounds kept."""
        if not self.gates and not self._bounded:
            return rows
        for column, dimension in enumerate(self.all):
            is_there = np.ones(len(rows), dtype=bool)
            for parent, allowed in dimension.when.items():
                is_there &= np.isin(rows[:, parent], allowed)
            missing = is_there & np.isnan(rows[:, column])
            rows[missing, column] = dimension.drawn(int(missing.sum()), rng)
            rows[~is_there, column] = np.nan
            if column in self._bounded:
                self._move_into_bounds(rows, column)
        return rows

    def _move_into_bounds(self, rows: Rows, column: int) -> None:
        """Move numbers out of bounds to the nearer end; where nothing is left, `SearchSpace.complete` finds it out."""
        dimension = self.all[column]
        least, most = (self._bound(rows, bound) for bound in dimension.parameter.bounds)
        rows[:, column] = dimension.moved_between(rows[:, column], least, most)

    def _bound(self, rows: Rows, bound: Bound | None) -> NDArray[np.float64]:
        """What a bound is for each row; NaN: it bounds nothing there."""
        if bound is None:
            return np.full(len(rows), np.nan)
        total = np.full(len(rows), bound.constant)
        for name, factor in bound.factors:
            column = self._columns.get(name)
            total += factor * (
                _amount(self._constants[name]) if column is None else self.all[column].amounts(rows[:, column])
            )
        return total
