"""One of a few values."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from search_spaces.conditions import is_same
from search_spaces.configuration import JsonScalar
from search_spaces.errors import did_you_mean
from search_spaces.parameter_parts import ParameterBase, described, settle
from search_spaces.ranges import is_number

if TYPE_CHECKING:
    from numpy.random import Generator
    from optuna.distributions import CategoricalDistribution

__all__ = ["Categorical", "PlainValue"]

PlainValue: TypeAlias = JsonScalar | tuple[JsonScalar, ...]
"""A value as whoever trains with it reads it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Categorical(ParameterBase):
    """One of a few values.

    A value is a scalar, or a list of scalars such as a kernel's height and width. A list has a label, here `3x5`, which
    stands for it wherever configurations are kept, compared and shown: a database, a file, a plot.

    Attributes:
        choices: the values, in their order; any sequence is given, labels and scalars are kept as a tuple.
        ordered: whether the order means something, so that only adjacent choices are neighbours.
        lists: (label, list) for each choice that is a list.

    Example:
        >>> kernel = Categorical(choices=[[3, 3], [3, 5]])
        >>> kernel.choices, kernel.plain("3x5")
        (('3x3', '3x5'), (3, 5))
    """

    choices: tuple[Any, ...]
    ordered: bool = False
    lists: tuple[tuple[str, tuple[JsonScalar, ...]], ...] = field(init=False, default=(), repr=False)

    def __post_init__(self) -> None:
        """Check the choices.

        Raises:
            InvalidParameterError: there is no choice, two are equal (True equals 1), or one is neither a JSON scalar
                nor a list of them; or the role or the condition cannot be.
        """
        if isinstance(self.choices, str):
            settle(self, [f"choices={self.choices!r} is one text; give a tuple of choices"])
        given = tuple(self.choices)
        problems = [] if given else ["there are no choices; give at least one"]
        problems += [
            f"choice {choice!r} is neither a finite JSON scalar nor a list of them" for choice in given if _odd(choice)
        ]
        labels = [_label(choice) for choice in given if not _odd(choice)]
        twice = [label for index, label in enumerate(labels) if label in labels[:index]]
        problems += [f"choice {label!r} is there twice (True equals 1)" for label in twice]
        settle(self, problems)
        object.__setattr__(self, "choices", tuple(labels))
        object.__setattr__(self, "lists", tuple((_label(c), tuple(c)) for c in given if _is_list(c)))

    def sample(self, rng: "Generator") -> JsonScalar:
        """Draw a choice; all are equally likely."""
        choice: JsonScalar = self.choices[int(rng.integers(len(self.choices)))]
        return choice

    def problem(self, value: object) -> str | None:
        """Return why the value is not allowed, or None; a value of another type is another value."""
        label = _label(value) if _is_list(value) and not _odd(value) else value
        if any(is_same(choice, label) for choice in self.choices):
            return None
        names = [choice for choice in self.choices if isinstance(choice, str)]
        suggestion = did_you_mean(label, names) if isinstance(label, str) else ""
        return f"is not allowed;{suggestion} choices: {', '.join(map(repr, self.choices))}"

    def normalise(self, value: Any) -> JsonScalar:
        """Return the choice itself, the label of a list."""
        choice: JsonScalar = self.choices[self._index(value)]
        return choice

    def plain(self, value: JsonScalar) -> PlainValue:
        """Return the value as its reader wants it: a list for its label."""
        return next((items for label, items in self.lists if label == value), value)

    def mutate(self, value: Any, rng: "Generator") -> JsonScalar:
        """Draw another choice, all equally likely; the same when there is only one."""
        others = [choice for choice in self.choices if not is_same(choice, value)]
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

    def values(self) -> Iterator[JsonScalar]:
        """Yield every choice."""
        return iter(self.choices)

    def encoded(self, value: Any) -> float:
        """Return the place of a choice as the number that `decoded` reads."""
        return float(self._index(value))

    def decoded(self, number: float) -> JsonScalar:
        """Return the choice at a place."""
        choice: JsonScalar = self.choices[int(number)]
        return choice

    def distribution(self) -> "CategoricalDistribution":
        """Return Optuna's equal distribution, which does not know of an order."""
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(self.choices)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-safe description that `parameter_from_json` reads."""
        fields = described("categorical", self)
        del fields["lists"]
        lists = dict(self.lists)
        return fields | {"choices": [list(lists[c]) if c in lists else c for c in self.choices]}

    def _index(self, value: Any) -> int:
        label = _label(value)
        return next(index for index, choice in enumerate(self.choices) if is_same(choice, label))


def _label(choice: Any) -> JsonScalar:
    label: JsonScalar = "x".join(map(str, choice)) if _is_list(choice) else choice
    return label


def _is_list(choice: object) -> bool:
    return isinstance(choice, list | tuple)


def _odd(choice: Any) -> bool:
    if _is_list(choice):
        return not choice or any(_is_list(item) or _odd(item) for item in choice)
    return not (choice is None or isinstance(choice, bool | str) or is_number(choice))
