"""The parameters a search may turn: what values they take, how one is drawn, and which values lie near.

Nothing here knows a study or a network. Values are plain JSON scalars, so that each one survives a database, a
YAML file and an HTTP request; NaN, booleans in place of integers and text in place of numbers are refused.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from search_spaces.configuration import JsonScalar
from search_spaces.errors import InvalidParameterError, did_you_mean
from search_spaces.ranges import (
    STEP_TOLERANCE,
    between,
    grid_value,
    is_integer,
    is_number,
    mirrored,
    position_between,
    range_problems,
    step_problems,
)

if TYPE_CHECKING:
    from numpy.random import Generator
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

__all__ = ["Categorical", "Float", "Integer", "Parameter", "Role", "parameter_from_json"]

Role: TypeAlias = Literal["architecture", "training", "data"]
"""Who reads a parameter: the network builder, the trainer, or the preparation of the data."""

MUTATION_SPREAD = 0.2
"""Standard deviation of a mutation of a number, as a share of its range on its scale."""
NEIGHBOUR_DISTANCE = 0.1
"""How far a neighbour lies where there are no steps, as a share of the range on its scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Float:
    """A real number in a closed interval.

    Attributes:
        low: smallest value.
        high: largest value; with a step it must lie on the grid.
        log: whether equal ratios, not equal differences, are equally likely; needs low > 0.
        step: distance of the grid that starts at low; None: every number in between.
        role: who reads it.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None
    role: Role = "training"

    def __post_init__(self) -> None:
        """Check the bounds and make them floats.

        Raises:
            InvalidParameterError: the bounds, the step or the role cannot be; all mistakes are listed.
        """
        numbers = {"low": self.low, "high": self.high} | ({} if self.step is None else {"step": self.step})
        wrong = [f"{key}={number!r} is no finite number" for key, number in numbers.items() if not is_number(number)]
        problems = wrong or range_problems(self.low, self.high, self.log)
        if not problems and self.step is not None:
            problems = step_problems(self.low, self.high, self.log, self.step)
        _raise_all(self, problems)
        for key, number in numbers.items():
            object.__setattr__(self, key, float(number) + 0.0)  # never -0.0
        if self.step is not None:
            object.__setattr__(self, "high", self._on_grid(self._steps()))  # 0.15000000000000002 is 0.15

    def sample(self, rng: "Generator") -> float:
        """Draw a value: uniform on the scale."""
        if self.step is not None:
            return self._on_grid(int(rng.integers(self._steps() + 1)))
        return self.at(float(rng.random()))

    def problem(self, value: object) -> str | None:
        """Return why the value is not allowed, or None; an int is taken as the same real number."""
        if not is_number(value):
            return f"is no finite number; it is in {_interval(self)}"
        if not self.low <= value <= self.high:
            return f"is outside {_interval(self)}"
        if self.step is not None and abs(self._index(value) - round(self._index(value))) > STEP_TOLERANCE:
            return f"is not on the grid {self.low!r}, {self._on_grid(1)!r}, ..., {self.high!r}"
        return None

    def normalise(self, value: Any) -> float:
        """Return an allowed value in its one spelling: a float, on the grid to the last bit, never -0.0."""
        return self._on_grid(round(self._index(value))) if self.step is not None else float(value) + 0.0

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

    def position(self, value: Any) -> float:
        """Return where a value lies between low (0.0) and high (1.0), on the scale that is sampled."""
        return position_between(value, self.low, self.high, self.log)

    def at(self, position: float) -> float:
        """Return the value at a position in [0, 1]; with a step the nearest one on the grid."""
        if self.step is not None:
            return self._on_grid(round(position * self._steps()))
        return min(max(between(position, self.low, self.high, self.log), self.low), self.high) + 0.0

    def distribution(self) -> "FloatDistribution":
        """Return Optuna's equal distribution."""
        from optuna.distributions import FloatDistribution

        return FloatDistribution(self.low, self.high, log=self.log, step=self.step)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-safe description that `parameter_from_json` reads."""
        return {"type": "float"} | asdict(self)

    def _index(self, value: float) -> float:
        assert self.step is not None
        return (value - self.low) / self.step

    def _steps(self) -> int:
        return round(self._index(self.high))

    def _on_grid(self, index: int) -> float:
        assert self.step is not None
        return grid_value(self.low, self.step, index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Integer:
    """A whole number in a closed interval.

    Attributes:
        low: smallest value.
        high: largest value; must lie on the grid of the steps.
        log: whether equal ratios are equally likely; needs low >= 1 and step 1.
        step: distance of the grid that starts at low.
        role: who reads it.
    """

    low: int
    high: int
    log: bool = False
    step: int = 1
    role: Role = "training"

    def __post_init__(self) -> None:
        """Check the bounds.

        Raises:
            InvalidParameterError: the bounds, the step or the role cannot be; all mistakes are listed.
        """
        numbers = {"low": self.low, "high": self.high, "step": self.step}
        wrong = [f"{key}={number!r} is no integer" for key, number in numbers.items() if not is_integer(number)]
        problems = wrong or range_problems(self.low, self.high, self.log)
        if not problems and self.step != 1:
            problems = step_problems(self.low, self.high, self.log, self.step)
        _raise_all(self, problems)

    def sample(self, rng: "Generator") -> int:
        """Draw a value: uniform, or nearly uniform in the logarithm."""
        if self.log:
            # Half a number more at both ends, or the first and the last would come half as often.
            drawn = round(between(float(rng.random()), self.low - 0.5, self.high + 0.5, log=True))
            return min(max(drawn, self.low), self.high)
        return self.low + self.step * int(rng.integers(self.size()))

    def problem(self, value: object) -> str | None:
        """Return why the value is not allowed, or None."""
        if not is_integer(value):
            return f"is no integer; it is in {_interval(self)}"
        if not self.low <= value <= self.high:
            return f"is outside {_interval(self)}"
        if (value - self.low) % self.step:
            return f"is not one of {self.low}, {self.low + self.step}, ..., {self.high}"
        return None

    def normalise(self, value: Any) -> int:
        """Return an allowed value in its one spelling."""
        return int(value)

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

    def position(self, value: Any) -> float:
        """Return where a value lies between low (0.0) and high (1.0), on the scale that is sampled."""
        return position_between(value, self.low, self.high, self.log)

    def at(self, position: float) -> int:
        """Return the value nearest to a position in [0, 1]."""
        exact = between(position, self.low, self.high, self.log)
        return min(max(self.low + self.step * round((exact - self.low) / self.step), self.low), self.high)

    def distribution(self) -> "IntDistribution":
        """Return Optuna's equal distribution."""
        from optuna.distributions import IntDistribution

        return IntDistribution(self.low, self.high, log=self.log, step=self.step)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-safe description that `parameter_from_json` reads."""
        return {"type": "integer"} | asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Categorical:
    """One of a few values.

    Attributes:
        choices: the values, in their order; any sequence is kept as a tuple.
        ordered: whether the order means something, so that only adjacent choices are neighbours.
        role: who reads it.
    """

    choices: tuple[JsonScalar, ...]
    ordered: bool = False
    role: Role = "training"

    def __post_init__(self) -> None:
        """Check the choices.

        Raises:
            InvalidParameterError: there is no choice, two are equal (True equals 1), or one is no JSON scalar.
        """
        if isinstance(self.choices, str):
            _raise_all(self, [f"choices={self.choices!r} is one text; give a tuple of choices"])
        object.__setattr__(self, "choices", tuple(self.choices))
        scalars = [choice for choice in self.choices if _is_scalar(choice)]
        problems = [] if self.choices else ["there are no choices; give at least one"]
        problems += [f"choice {choice!r} is no finite JSON scalar" for choice in self.choices if not _is_scalar(choice)]
        twice = [choice for index, choice in enumerate(scalars) if choice in scalars[:index]]
        problems += [f"choice {choice!r} is there twice (True equals 1)" for choice in twice]
        _raise_all(self, problems)

    def sample(self, rng: "Generator") -> JsonScalar:
        """Draw a choice; all are equally likely."""
        return self.choices[int(rng.integers(len(self.choices)))]

    def problem(self, value: object) -> str | None:
        """Return why the value is not allowed, or None; a value of another type is another value."""
        if any(_is_same(choice, value) for choice in self.choices):
            return None
        names = [choice for choice in self.choices if isinstance(choice, str)]
        suggestion = did_you_mean(value, names) if isinstance(value, str) else ""
        return f"is not allowed;{suggestion} choices: {', '.join(map(repr, self.choices))}"

    def normalise(self, value: Any) -> JsonScalar:
        """Return the choice itself."""
        return self.choices[self._index(value)]

    def mutate(self, value: Any, rng: "Generator") -> JsonScalar:
        """Draw another choice, all equally likely; the same when there is only one."""
        others = [choice for choice in self.choices if not _is_same(choice, value)]
        return others[int(rng.integers(len(others)))] if others else self.normalise(value)

    def neighbours(self, value: Any) -> Iterator[JsonScalar]:
        """Yield every other choice, or the adjacent ones when the choices are ordered."""
        index = self._index(value)
        for other, choice in enumerate(self.choices):
            if other != index and (not self.ordered or abs(other - index) == 1):
                yield choice

    def size(self) -> int:
        """Return the number of choices."""
        return len(self.choices)

    def distribution(self) -> "CategoricalDistribution":
        """Return Optuna's equal distribution, which does not know of an order."""
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(self.choices)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-safe description that `parameter_from_json` reads."""
        return {"type": "categorical"} | asdict(self) | {"choices": list(self.choices)}

    def _index(self, value: Any) -> int:
        return next(index for index, choice in enumerate(self.choices) if _is_same(choice, value))


Parameter: TypeAlias = Float | Integer | Categorical


def parameter_from_json(description: Mapping[str, Any]) -> Parameter:
    """Build the parameter that a `to_json` of the same version or an older one described.

    Raises:
        InvalidParameterError: the type or a field is unknown, or the parameter cannot be.
    """
    fields = dict(description)
    kind = fields.pop("type", None)
    types: dict[object, type[Parameter]] = {"float": Float, "integer": Integer, "categorical": Categorical}
    if kind not in types:
        known = f"{did_you_mean(str(kind), map(str, types))} types: {', '.join(map(str, types))}"
        raise InvalidParameterError(f"no parameter type {kind!r};{known}")
    try:
        return types[kind](**fields)
    except TypeError as error:
        raise InvalidParameterError(f"{kind} parameter: {error}") from error


def _interval(parameter: Float | Integer) -> str:
    return f"[{parameter.low!r}, {parameter.high!r}]" + (" (log scale)" if parameter.log else "")


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, bool | str) or is_integer(value) or is_number(value)


def _is_same(choice: JsonScalar, value: object) -> bool:
    return type(choice) is type(value) and choice == value


def _raise_all(parameter: Parameter, problems: list[str]) -> None:
    roles = get_args(Role)
    if parameter.role not in roles:
        suggestion = did_you_mean(str(parameter.role), roles)
        problems = [*problems, f"role={parameter.role!r} is unknown;{suggestion} roles: {', '.join(roles)}"]
    if problems:
        raise InvalidParameterError(f"{type(parameter).__name__}: {'; '.join(problems)}")
