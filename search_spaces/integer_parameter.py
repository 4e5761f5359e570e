"""Whole numbers in a range."""

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
    between,
    is_integer,
    last_on_grid,
    listed_grid,
    mirrored,
    position_between,
    range_problems,
    step_problems,
)

if TYPE_CHECKING:
    from numpy.random import Generator
    from optuna.distributions import IntDistribution

__all__ = ["Integer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Integer(Number):
    """A whole number in a closed interval.

    Attributes:
        low: smallest value.
        high: largest value; where it is not on the grid of the steps, the last one below it is taken instead.
        log: whether equal ratios are equally likely; needs low >= 1 and step 1.
        step: distance of the grid that starts at low.
    """

    low: int
    high: int
    log: bool = False
    step: int = 1

    def __post_init__(self) -> None:
        """Check the bounds.

        Raises:
            InvalidParameterError: the bounds, the step, the role or the condition cannot be; all mistakes are listed.
        """
        numbers = {"low": self.low, "high": self.high, "step": self.step}
        wrong = [f"{key}={number!r} is no integer" for key, number in numbers.items() if not is_integer(number)]
        problems = wrong or range_problems(self.low, self.high, self.log)
        if not problems and self.step != 1:
            problems = step_problems(self.low, self.high, self.log, self.step)
        settle_number(self, problems)
        if (self.high - self.low) % self.step:
            given = self.high
            object.__setattr__(self, "high", self.low + last_on_grid(self.low, given, self.step) * self.step)
            values = listed_grid(self.low, self.high, self.step)
            object.__setattr__(self, "note", f"high={given!r} is not on the grid; the values are {values}")

    def sample(self, rng: "Generator") -> int:
        """Draw a value: uniform, or nearly uniform in the logarithm."""
        if self.log:
            return self.quantile(float(rng.random()))
        return self.low + self.step * int(rng.integers(self.size()))

    def quantile(self, share: float) -> int:
        """Return the value that a share of all draws lies below, from 0 up to, but without, 1."""
        if self.log:
            # Half a number more at both ends, or the first and the last would come half as often.
            drawn = round(between(share, self.low - 0.5, self.high + 0.5, log=True))
            return min(max(drawn, self.low), self.high)
        return self.low + self.step * int(share * self.size())

    def problem(self, value: object) -> str | None:
        """Return why the value is not allowed, or None."""
        if not is_integer(value):
            return f"is no integer; it is in {interval(self.low, self.high, self.log)}"
        if not self.low <= value <= self.high:
            return f"is outside {interval(self.low, self.high, self.log)}"
        if (value - self.low) % self.step:
            return f"is not one of {self.low}, {self.low + self.step}, ..., {self.high}"
        return None

    def normalise(self, value: Any) -> int:
        """Return an allowed value in its one spelling."""
        return int(value)

    def narrowed(self, values: Mapping[str, JsonScalar]) -> "Integer | int | None":
        """Return the range that other parameters' values leave: a narrower one, its only value, or None for nothing."""
        return self.cut_to(*range_at(self, self.low, self.high, values)) if self.is_bounded else self

    def cut_to(self, least: float, most: float) -> "Integer | int | None":
        """Return what lies between two numbers: a narrower range, its only value, or None for nothing."""
        least, most = max(least, self.low), min(most, self.high)
        low = self.low + math.ceil((least - self.low) / self.step) * self.step
        high = self.low + math.floor((most - self.low) / self.step) * self.step
        if low < high:
            return replace(self, low=low, high=high, at_least=None, at_most=None)
        return low if low == high else None

    def moved_into(self, value: Any) -> int:
        """Return the nearest of the values."""
        moved = min(max(value, self.low), self.high)
        return self.normalise(moved) if self.problem(moved) is None else self.at(self.position(moved))

    def mutate(self, value: Any, rng: "Generator") -> int:
        """Draw another value, probably a near one: a normal step on the scale, mirrored at its ends."""
        moved = self.at(mirrored(self.position(value) + float(rng.normal(0.0, MUTATION_SPREAD))))
        if moved != value:
            return moved
        others = tuple(self.neighbours(value))
        return others[int(rng.integers(len(others)))]

    def neighbours(self, value: Any) -> Iterator[int]:
        """Yield the next lower and higher value: a step away, on a log scale a tenth of the range."""
        for direction in (-1, 1):
            neighbour: int = value + direction * self.step
            if self.log:
                far = self.at(min(max(self.position(value) + direction * NEIGHBOUR_DISTANCE, 0.0), 1.0))
                neighbour = min(far, neighbour) if direction < 0 else max(far, neighbour)
            if self.low <= neighbour <= self.high:
                yield neighbour

    def size(self) -> int:
        """Return the number of values."""
        return (self.high - self.low) // self.step + 1

    def values(self) -> Iterator[int]:
        """Yield every value."""
        return iter(range(self.low, self.high + 1, self.step))

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        return self.low, self.high

    def middle(self) -> int:
        """Return the value in the middle of the scale."""
        return self.at(0.5)

    def position(self, value: Any) -> float:
        """Return where a value lies between low (0.0) and high (1.0), on the scale that is sampled."""
        return position_between(value, self.low, self.high, self.log)

    def at(self, position: float) -> int:
        """Return the value nearest to a position in [0, 1]."""
        exact = between(position, self.low, self.high, self.log)
        return min(max(self.low + self.step * round((exact - self.low) / self.step), self.low), self.high)

    def encoded(self, value: Any) -> float:
        """Return the value as the number that `decoded` reads; every whole number within 2**53 is a float."""
        return float(value)

    def decoded(self, number: float) -> JsonScalar:
        """Return the value that a number stands for, whether it is allowed or not."""
        return int(number) if float(number).is_integer() else number

    def distribution(self) -> "IntDistribution":
        """Return Optuna's equal distribution."""
        from optuna.distributions import IntDistribution

        return IntDistribution(self.low, self.high, log=self.log, step=self.step)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-safe description that `parameter_from_json` reads."""
        return described("integer", self)
