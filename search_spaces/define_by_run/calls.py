"""The calls by which define-by-run functions ask for values: Optuna's `suggest_float`, Keras Tuner's `Float`, and more.

One object understands both; what it answers is up to a subclass.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from search_spaces.conditions import is_same
from search_spaces.configuration import JsonScalar
from search_spaces.errors import InvalidParameterError
from search_spaces.parameters import Categorical, Float, Integer, Parameter
from search_spaces.ranges import MOST_STEPS

__all__ = ["Sampling", "TrialCalls"]

Sampling: TypeAlias = Literal["linear", "log"]
"""Keras Tuner's name of a scale."""


class TrialCalls(ABC):
    """A trial, or `hp`, as the function of a person of another library knows it."""

    def __init__(self) -> None:
        self._answers: dict[str, Any] = {}
        self._scopes: list[bool] = []

    @abstractmethod
    def answer(self, name: str, parameter: Parameter, default: Any) -> JsonScalar:
        """Return the value of a parameter: one of its choices as they are kept, or a number.

        Args:
            name: of the parameter.
            parameter: what it may be.
            default: the value that the function names itself; None: none.
        """

    @property
    def params(self) -> Mapping[str, Any]:
        """What was answered so far; Keras Tuner calls it `values`."""
        return MappingProxyType(self._answers)

    values = params

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        """Ask for a real number, as in Optuna."""
        number: float = self._ask_number(name, _float(low, high, step, log))
        return number

    def suggest_int(self, name: str, low: int, high: int, *, step: int = 1, log: bool = False) -> int:
        """Ask for a whole number, as in Optuna."""
        number: int = self._ask_number(name, _integer(low, high, step, log))
        return number

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """Ask for one of a few values, as in Optuna."""
        return self._ask_choice(name, choices)

    def Float(
        self,
        name: str,
        min_value: float,
        max_value: float,
        step: float | None = None,
        sampling: Sampling | None = None,
        default: float | None = None,
        parent_name: str | None = None,
        parent_values: Any = None,
    ) -> float:
        """Ask for a real number, as in Keras Tuner; with `sampling="log"` a step is a factor."""
        given = (min_value, max_value, step)
        number: float = self._ask_range(name, given, sampling, default, (parent_name, parent_values))
        return number

    def Int(
        self,
        name: str,
        min_value: int,
        max_value: int,
        step: int | None = None,
        sampling: Sampling | None = None,
        default: int | None = None,
        parent_name: str | None = None,
        parent_values: Any = None,
    ) -> int:
        """Ask for a whole number, as in Keras Tuner; with `sampling="log"` a step is a factor."""
        given = (min_value, max_value, step)
        number: int = self._ask_range(name, given, sampling, default, (parent_name, parent_values), whole=True)
        return number

    def Choice(
        self,
        name: str,
        values: Sequence[Any],
        ordered: bool | None = None,
        default: Any = None,
        parent_name: str | None = None,
        parent_values: Any = None,
    ) -> Any:
        """Ask for one of a few values, as in Keras Tuner: numbers have an order."""
        is_number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        with self._maybe_scope(parent_name, parent_values):
            return self._ask_choice(name, values, is_number if ordered is None else ordered, values[0], default)

    def Boolean(
        self, name: str, default: bool | None = None, parent_name: str | None = None, parent_values: Any = None
    ) -> bool:
        """Ask for true or false, as in Keras Tuner."""
        with self._maybe_scope(parent_name, parent_values):
            answer: bool = self._ask_choice(name, (False, True), False, False, default)
            return answer

    def Fixed(self, name: str, value: Any, parent_name: str | None = None, parent_values: Any = None) -> Any:
        """Name a value that is the same for all, as in Keras Tuner."""
        with self._maybe_scope(parent_name, parent_values):
            return self._ask_choice(name, (value,), False, value)

    @contextmanager
    def conditional_scope(self, parent_name: str, parent_values: Any) -> Iterator[None]:
        """Ask within it only when a parameter has one of some values; otherwise each answer is its default.

        Raises:
            InvalidParameterError: the parameter was not asked for before.
        """
        if parent_name not in self._answers and all(self._scopes):
            raise InvalidParameterError(f"the scope depends on {parent_name!r}, which was not asked for before it")
        values = parent_values if isinstance(parent_values, list | tuple) else [parent_values]
        self._scopes.append(self._answers.get(parent_name, _NOTHING) in values)
        try:
            yield
        finally:
            self._scopes.pop()

    def get(self, name: str) -> Any:
        """Return what was answered before, as in Keras Tuner."""
        return self._answers[name]

    def __getitem__(self, name: str) -> Any:
        return self._answers[name]

    def __contains__(self, name: str) -> bool:
        return name in self._answers

    @contextmanager
    def _maybe_scope(self, name: str | None, values: Any) -> Iterator[None]:
        if name is None:
            yield
        else:
            with self.conditional_scope(name, values):
                yield

    def _ask_range(
        self,
        name: str,
        given: tuple[Any, Any, Any],
        sampling: str | None,
        default: Any,
        parent: tuple[str | None, Any],
        *,
        whole: bool = False,
    ) -> Any:
        low, high, step = given
        if sampling not in (None, "linear", "log"):
            raise InvalidParameterError(f"{name}: sampling={sampling!r} is not known here; give linear or log")
        with self._maybe_scope(*parent):
            if sampling == "log" and step is not None:
                steps = _powers(name, low, high, step)
                return self._ask_choice(name, steps, True, low, default)
            make = _integer if whole else _float
            parameter = make(low, high, (step or 1) if whole else step, sampling == "log")
            return self._ask_number(name, parameter, low, default)

    def _ask_number(self, name: str, parameter: Parameter, usual: Any = None, default: Any = None) -> Any:
        if not all(self._scopes):
            return usual if default is None else default
        self._answers[name] = self.answer(name, parameter, default)
        return self._answers[name]

    def _ask_choice(
        self, name: str, choices: Sequence[Any], ordered: bool = False, usual: Any = None, default: Any = None
    ) -> Any:
        if not all(self._scopes):
            return usual if default is None else default
        parameter = Categorical(choices=tuple(choices), ordered=ordered)
        kept = self.answer(name, parameter, default)
        # The person's own object: a list stays a list.
        self._answers[name] = next(
            own for own, label in zip(choices, parameter.choices, strict=True) if is_same(label, kept)
        )
        return self._answers[name]


_NOTHING = object()


def _float(low: float, high: float, step: float | None, log: bool) -> Parameter:
    if low == high:
        return Categorical(choices=(float(low),))  # another library's range of one value
    return Float(low=low, high=high, step=step, log=log)


def _integer(low: int, high: int, step: int, log: bool) -> Parameter:
    return Categorical(choices=(low,)) if low == high else Integer(low=low, high=high, step=step, log=log)


def _powers(name: str, low: Any, high: Any, factor: Any) -> list[Any]:
    """Return low, low * factor, ... up to high."""
    if not (low > 0 and factor > 1 and high >= low):
        raise InvalidParameterError(
            f"{name}: a log scale with a step needs min_value > 0, max_value above it, step > 1"
        )
    count = math.floor(math.log(high / low, factor) + 1e-8)
    if count > MOST_STEPS:
        raise InvalidParameterError(f"{name}: step={factor!r} cuts the range into too many steps")
    return [low * factor**index for index in range(count + 1)]
