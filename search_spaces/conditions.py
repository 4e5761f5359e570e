"""When a parameter is there: the values that other parameters must have for it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from search_spaces.configuration import JsonScalar

__all__ = ["Condition", "When", "allowed_values", "is_same"]

When: TypeAlias = Mapping[str, Any]
"""Parameter name -> the value, or the list of values, with which the condition holds; a value may be a list itself."""


class Condition(Mapping[str, tuple[JsonScalar, ...]]):
    """Holds when every named parameter is there and has one of its values; an empty one always holds.

    Example:
        >>> condition = Condition({"operation": ("conv3x3", "conv5x5")})
        >>> condition.holds({"operation": "conv3x3"}), condition.holds({"operation": "skip"}), condition.holds({})
        (True, False, False)
        >>> str(condition)
        'operation is conv3x3 or conv5x5'
    """

    __slots__ = ("_marked", "_tests")

    def __init__(self, tests: When) -> None:
        """Copy the tests; one value stands for a list of one."""
        self._tests: dict[str, tuple[JsonScalar, ...]] = {name: allowed_values(given) for name, given in tests.items()}
        # The type beside the value tells 1, 1.0 and True apart; see `is_same`.
        self._marked = {name: frozenset((type(v), v) for v in allowed) for name, allowed in self._tests.items()}

    def holds(self, values: Mapping[str, JsonScalar]) -> bool:
        """Whether it holds for these values; a parameter that is not there fails its test."""
        for name, marked in self._marked.items():
            if name not in values or (type(values[name]), values[name]) not in marked:
                return False
        return True

    def and_also(self, other: When) -> "Condition":
        """Return the condition that holds where both do."""
        joined = dict(self._tests)
        for name, allowed in Condition(other).items():
            marked = {(type(value), value) for value in allowed}
            joined[name] = tuple(value for value in joined.get(name, allowed) if (type(value), value) in marked)
        return Condition(joined)

    def renamed(self, names: Mapping[str, str]) -> "Condition":
        """Return the same condition on parameters of other names; those that are not named keep theirs."""
        return Condition({names.get(name, name): allowed for name, allowed in self._tests.items()})

    def __getitem__(self, name: str) -> tuple[JsonScalar, ...]:
        return self._tests[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tests)

    def __len__(self) -> int:
        return len(self._tests)

    def __hash__(self) -> int:
        return hash(frozenset(self._tests.items()))

    def __str__(self) -> str:
        """Return the condition in words."""
        return " and ".join(f"{name} is {' or '.join(map(str, allowed))}" for name, allowed in self._tests.items())

    def __repr__(self) -> str:
        return f"Condition({self._tests!r})"


def allowed_values(given: Any) -> tuple[Any, ...]:
    """Return the values of a test; one value stands for a list of one, and a list among the values is one of them."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        return (given,)
    return tuple(tuple(value) if isinstance(value, list) else value for value in given)


def is_same(first: JsonScalar, second: object) -> bool:
    """Whether two values are one: equal and of one type, so that 1, 1.0 and True are three."""
    return type(first) is type(second) and first == second
