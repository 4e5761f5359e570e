"""Real numbers in a range."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from search_spaces.configuration import JsonScalar
from search_spaces.parameter_parts import (
    MUTATION_SPREAD,
    NEIGHBOUR_DISTANCE,
    Number,
    described,
    interval,
    range_at,
    settle_number,
)
from search_spaces.ranges import (
    STEP_TOLERANCE,
    between,
    grid_value,
    is_number,
    last_on_grid,
    listed_grid,
    mirrored,
    position_between,
    range_problems,
    step_problems,
)

if TYPE_CHECKING:
    from numpy.random import Generator
    from optuna.distributions import FloatDistribution

__all__ = ["Float"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Float(Number):
    """A real number in a closed interval.

    Attributes:
        low: smallest value.
        high: largest value; where it is not on the grid of the steps, the last one below it is taken instead.
        log: whether equal ratios, not equal differences, are equally likely; needs low > 0.
        step: distance of the grid that starts at low; None: every number in between.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def __post_init__(self) -> None:
        """Check the bounds and make them floats.

        Raises:
            InvalidParameterError: the bounds, the step, the role or the condition cannot be; all mistakes are listed.
        """
        numbers = {"low": self.low, "high": self.high} | ({} if self.step is None else {"step": self.step})
        wrong = [f"{key}={number!r} is no finite number" for key, number in numbers.items() if not is_number(number)]
        problems = wrong or range_problems(self.low, self.high, self.log)
        if not problems and self.step is not None:
            problems = step_problems(self.low, self.high, self.log, self.step)
        settle_number(self, problems)
        for key, number in numbers.items():
            object.__setattr__(self, key, float(number) + 0.0)  # never -0.0
        if self.step is not None:
            self._end_on_grid(self.high)

    def sample(self, rng: "Generator") -> float:
        """Draw a value: uniform on the scale."""
        if self.step is not None:
            return self._on_grid(int(rng.integers(self._steps() + 1)))
        return self.at(float(rng.random()))

    def quantile(self, share: float) -> float:
        """Return the value that a share of all draws lies below, from 0 up to, but without, 1."""
        return self.at(share) if self.step is None else self._on_grid(int(share * (self._steps() + 1)))

    def problem(self, value: object) -> str | None:
        """Return why the value is not allowed, or None; an int is taken as the same real number."""
        if not is_number(value):
            return f"is no finite number; it is in {interval(self.low, self.high, self.log)}"
        if not self.low <= value <= self.high:
            return f"is outside {interval(self.low, self.high, self.log)}"
        if self.step is not None and abs(self._index(value) - round(self._index(value))) > STEP_TOLERANCE:
            return f"is not on the grid {self.low!r}, {self._on_grid(1)!r}, ..., {self.high!r}"
        return None

    def normalise(self, value: Any) -> float:
        """Return an allowed value in its one spelling: a float, on the grid to the last bit, never -0.0."""
        return self._on_grid(round(self._index(value))) if self.step is not None else float(value) + 0.0

    def narrowed(self, values: Mapping[str, JsonScalar]) -> "Float | float | None":
        """Return the range that other parameters' values leave: a narrower one, its only value, or None for nothing."""
        return self.cut_to(*range_at(self, self.low, self.high, values)) if self.is_bounded else self

    def cut_to(self, least: float, most: float) -> "Float | float | None":
        """Return what lies between two numbers: a narrower range, its only value, or None for nothing."""
        low, high = max(least, self.low), min(most, self.high)
        if self.step is not None:
            first, last = math.ceil(self._index(low) - STEP_TOLERANCE), math.floor(self._index(high) + STEP_TOLERANCE)
            low, high = (self._on_grid(first), self._on_grid(last)) if first <= last else (1.0, 0.0)
        if low < high:
            return replace(self, low=low, high=high, at_least=None, at_most=None)
        return low if low == high else None

    def moved_into(self, value: Any) -> float:
        """Return the nearest of the values."""
        moved = min(max(value, self.low), self.high)
        # The grid may begin elsewhere than where the value is from.
        return self.normalise(moved) if self.problem(moved) is None else self.at(self.position(moved))

    def mutate(self, value: Any, rng: "Generator") -> float:
        """Draw another value, probably a near one: a normal step on the scale, mirrored at its ends."""
        moved = self.at(mirrored(self.position(value) + float(rng.normal(0.0, MUTATION_SPREAD))))
        if moved != self.normalise(value):
            return moved
        others = tuple(self.neighbours(value)) or ((self.high if value == self.low else self.low),)
        return others[int(rng.integers(len(others)))]

    def neighbours(self, value: Any) -> Iterator[float]:
        """Yield the next lower and higher value: a step away, without steps a tenth of the range."""
        distance = NEIGHBOUR_DISTANCE if self.step is None else 1 / self._steps()
        for position in (self.position(value) - distance, self.position(value) + distance):
            neighbour = self.at(min(max(position, 0.0), 1.0))
            if neighbour != self.normalise(value):
                yield neighbour

    def size(self) -> int | None:
        """Return the number of values, None without a step."""
        return None if self.step is None else self._steps() + 1

    def values(self) -> Iterator[float]:
        """Yield every value of the grid.

        Raises:
            ValueError: there is no step.
        """
        if self.step is None:
            raise ValueError("a range without steps has no end of values")
        return (self._on_grid(index) for index in range(self._steps() + 1))

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        return self.low, self.high

    def middle(self) -> float:
        """Return the value in the middle of the scale."""
        return self.at(0.5)

    def position(self, value: Any) -> float:
        """Return where a value lies between low (0.0) and high (1.0), on the scale that is sampled."""
        return position_between(value, self.low, self.high, self.log)

    def at(self, position: float) -> float:
        """Return the value at a position in [0, 1]; with a step the nearest one on the grid."""
        if self.step is not None:
            return self._on_grid(round(position * self._steps()))
        return min(max(between(position, self.low, self.high, self.log), self.low), self.high) + 0.0

    def encoded(self, value: Any) -> float:
        """Return the value as the number that `decoded` reads."""
        return self.normalise(value)

    def decoded(self, number: float) -> float:
        """Return the value that a number stands for, whether it is allowed or not."""
        return float(number)

    def distribution(self) -> "FloatDistribution":
        """Return Optuna's equal distribution."""
        from optuna.distributions import FloatDistribution

        return FloatDistribution(self.low, self.high, log=self.log, step=self.step)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-safe description that `parameter_from_json` reads."""
        return described("float", self)

    def _end_on_grid(self, given: float) -> None:
        assert self.step is not None
        last = grid_value(self.low, self.step, last_on_grid(self.low, given, self.step))
        object.__setattr__(self, "high", last)  # 0.15000000000000002 is 0.15
        if abs(last - given) > STEP_TOLERANCE * self.step:
            values = listed_grid(self.low, last, self.step)
            object.__setattr__(self, "note", f"high={given!r} is not on the grid; the values are {values}")

    def _index(self, value: float) -> float:
        assert self.step is not None
        return (value - self.low) / self.step

    def _steps(self) -> int:
        return round(self._index(self.high))

    def _on_grid(self, index: int) -> float:
        assert self.step is not None
        return grid_value(self.low, self.step, index)
