"""Bounds that depend on other parameters, such as `100 - a` or `2 * width`: sums of multiples of numbers.

Only sums are understood, so that what a bound means can be told without running code of whoever wrote it.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from search_spaces.configuration import JsonScalar
from search_spaces.ranges import is_number

__all__ = ["Bound", "parse_bound"]


@dataclass(frozen=True, slots=True)
class Bound:
    """A constant and a factor for each parameter.

    Attributes:
        constant: what is left without parameters.
        factors: (parameter, factor) for each one that occurs.
    """

    constant: float
    factors: tuple[tuple[str, float], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that it depends on."""
        return tuple(name for name, _ in self.factors)

    def value(self, values: Mapping[str, JsonScalar]) -> float | None:
        """Return the bound for these values; None where one of its parameters is not there: it bounds nothing then."""
        total = self.constant
        for name, factor in self.factors:
            number = values.get(name)
            if not is_number(number):
                return None
            total += factor * number
        return total

    def fixed(self, constants: Mapping[str, JsonScalar]) -> "Bound | None":
        """Return the bound with the numbers of some parameters in it; None where one of these is no number."""
        if any(name in constants and not is_number(constants[name]) for name in self.names):
            return None
        known = Bound(self.constant, tuple(pair for pair in self.factors if pair[0] in constants))
        total = known.value(constants)
        assert total is not None
        return Bound(total, tuple(pair for pair in self.factors if pair[0] not in constants))

    def minus(self, other: "Bound") -> "Bound":
        """Return the difference of two bounds."""
        return _sum(self, _times(other, -1.0))

    def replaced(self, name: str, other: "Bound") -> "Bound":
        """Return the sum with another one in the place of a parameter; what cancels out is left out."""
        rest = Bound(self.constant, tuple(pair for pair in self.factors if pair[0] != name))
        total = _sum(rest, _times(other, dict(self.factors)[name]))
        return Bound(total.constant, tuple(pair for pair in total.factors if pair[1]))

    def __str__(self) -> str:
        """Return the bound as `parse_bound` reads it."""
        return " + ".join([repr(self.constant), *(f"{factor!r} * {name}" for name, factor in self.factors)])


@lru_cache(maxsize=1024)
def parse_bound(text: str) -> Bound:
    """Read a bound.

    Args:
        text: numbers and names of parameters, joined by `+`, `-`, `*` and `/`; names are only multiplied by numbers.

    Raises:
        ValueError: it is something else; the message says what.

    Example:
        >>> parse_bound("100 - 2 * a").value({"a": 30})
        40.0
    """
    try:
        bound = _read(ast.parse(text, mode="eval").body)
    except (SyntaxError, _NoBoundError, ZeroDivisionError) as error:
        reason = "" if isinstance(error, SyntaxError) else f": {error}"
        raise ValueError(
            f"{text!r} is no bound{reason}; write a sum of numbers and of parameters times numbers, such as 100 - 2 * a"
        ) from error
    return bound


class _NoBoundError(ValueError):
    pass


def _read(node: ast.expr) -> Bound:
    match node:
        case ast.Constant(value=number) if is_number(number):
            return Bound(float(number))
        case ast.Name(id=name):
            return Bound(0.0, ((name, 1.0),))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _times(_read(operand), -1.0)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _sum(_read(left), _read(right))
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _sum(_read(left), _times(_read(right), -1.0))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _product(_read(left), _read(right))
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _times(_read(left), 1.0 / _number(_read(right)))
    raise _NoBoundError(f"{ast.unparse(node)!r} is not understood")


def _sum(first: Bound, second: Bound) -> Bound:
    factors = dict(first.factors)
    for name, factor in second.factors:
        factors[name] = factors.get(name, 0.0) + factor
    return Bound(first.constant + second.constant, tuple(factors.items()))


def _times(bound: Bound, factor: float) -> Bound:
    return Bound(bound.constant * factor, tuple((name, own * factor) for name, own in bound.factors))


def _product(first: Bound, second: Bound) -> Bound:
    return _times(first, _number(second)) if not second.factors else _times(second, _number(first))


def _number(bound: Bound) -> float:
    if bound.factors:
        raise _NoBoundError(f"{bound.names[0]!r} is multiplied by another parameter, or divides something")
    return bound.constant
