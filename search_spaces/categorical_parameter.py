"""One of a few values."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from search_spaces.configuration import JsonScalar
from search_spaces.errors import did_you_mean
from search_spaces.parameter_parts import ParameterBase, PlainValue, described, settle
from search_spaces.ranges import is_number

if TYPE_CHECKING:
    from numpy.random import Generator
    from optuna.distributions import CategoricalDistribution

__all__ = ["Categorical", "PlainValue"]


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
    _places: Mapping[tuple[type, JsonScalar], int] = field(init=False, default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check the choices.

        Raises:
            InvalidParameterError: there is no choice, two are equal (True equals 1), one is neither a JSON scalar
                nor a list of them, or they have no order (a set) or a meaning each (a mapping); or the role or the
                condition cannot be.
        """
        if problem := _no_choices(self.choices):
            settle(self, [problem])
        given = tuple(self.choices)
        problems = [] if given else ["there are no choices; give at least one"]
        problems += [
            f"choice {choice!r} is neither a finite JSON scalar nor a list of them" for choice in given if _odd(choice)
        ]
        labels = [_label(choice) for choice in given if not _odd(choice)]
        problems += [f"choice {label!r} is there twice (True equals 1)" for label in _repeated(labels)]
        settle(self, problems)
        object.__setattr__(self, "choices", tuple(labels))
        object.__setattr__(self, "lists", tuple((_label(c), tuple(c)) for c in given if _is_list(c)))
        # The type beside the value tells 1, 1.0 and True apart.
        object.__setattr__(self, "_places", {(type(label), label): place for place, label in enumerate(labels)})

    def sample(self, rng: "Generator") -> JsonScalar:
        """Draw a choice; all are equally likely."""
        choice: JsonScalar = self.choices[int(rng.integers(len(self.choices)))]
        return choice

    def quantile(self, share: float) -> JsonScalar:
        """Return the choice that a share of all draws lies before, from 0 up to, but without, 1."""
        choice: JsonScalar = self.choices[int(share * len(self.choices))]
        return choice

    def problem(self, value: object) -> str | None:
        """Return why the value is not allowed, or None; a value of another type is another value."""
        if self._place(value) is not None:
            return None
        names = [choice for choice in self.choices if isinstance(choice, str)]
        label = _label(value)
        suggestion = did_you_mean(label, names) if isinstance(label, str) else ""
        return f"is not allowed;{suggestion} choices: {', '.join(map(repr, self.choices))}"

    def normalise(self, value: Any) -> JsonScalar:
        """Return the choice itself, the label of a list."""
        choice: JsonScalar = self.choices[self._index(value)]
        return choice

    def plain(self, value: JsonScalar) -> PlainValue:
        """Return the value as its reader wants it: a list for its label."""
        return next((items for label, items in self.lists if label == value), value)

    def narrowed(self, values: Mapping[str, JsonScalar]) -> "Categorical":
        """Return itself: no other parameter narrows choices."""
        return self

    def cut_to(self, least: float, most: float) -> "Categorical | None":
        """Return the choices between two numbers, where all are numbers; None: there is none."""
        kept = tuple(choice for choice in self.choices if least <= choice <= most)
        return replace(self, choices=kept) if kept else None

    def moved_into(self, value: Any) -> JsonScalar:
        """Return the value itself."""
        return self.normalise(value)

    @property
    def ends(self) -> tuple[float, float] | None:
        """The smallest and the largest choice; None where not all are numbers."""
        return (min(self.choices), max(self.choices)) if all(map(is_number, self.choices)) else None

    def middle(self) -> JsonScalar:
        """Return the first choice, which stands for all."""
        first: JsonScalar = self.choices[0]
        return first

    def mutate(self, value: Any, rng: "Generator") -> JsonScalar:
        """Draw another choice, all equally likely; the same when there is only one."""
        count = len(self.choices)
        if count == 1:
            return self.normalise(value)
        drawn = int(rng.integers(count - 1))
        choice: JsonScalar = self.choices[drawn + (drawn >= self._index(value))]
        return choice

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
        """Return the choice at a place.

        Raises:
            ValueError: there is no such place.
        """
        if not (float(number).is_integer() and 0 <= number < len(self.choices)):
            raise ValueError(f"{number!r} is the place of none of {len(self.choices)} choices")
        choice: JsonScalar = self.choices[int(number)]
        return choice

    def distribution(self) -> "CategoricalDistribution":
        """Return Optuna's equal distribution, which does not know of an order."""
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(self.choices)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-safe description that `parameter_from_json` reads."""
        lists = dict(self.lists)
        return described("categorical", self) | {"choices": [list(lists[c]) if c in lists else c for c in self.choices]}

    def _index(self, value: Any) -> int:
        place = self._place(value)
        assert place is not None, f"{value!r} is no choice"
        return place

    def _place(self, value: Any) -> int | None:
        if _is_list(value):
            return None if _odd(value) else self._places.get((str, _label(value)))
        try:
            return self._places.get((type(value), value))
        except TypeError:  # something that has no hash is no scalar
            return None


def _no_choices(given: object) -> str | None:
    """Say why something cannot be a list of choices, or None."""
    if isinstance(given, str | bytes):
        return f"choices={given!r} is one text; give a tuple of choices"
    if isinstance(given, set | frozenset):
        return f"choices={given!r} is a set, which has another order in each process; give a tuple of choices"
    if isinstance(given, Mapping):
        return f"choices={given!r} is a mapping; give a tuple of choices, such as its keys"
    return None if isinstance(given, Iterable) else f"choices={given!r} is no list; give a tuple of choices"


def _repeated(labels: Iterable[JsonScalar]) -> Iterator[JsonScalar]:
    seen: set[JsonScalar] = set()
    for label in labels:
        if label in seen:
            yield label
        seen.add(label)


def _label(choice: Any) -> JsonScalar:
    label: JsonScalar = "x".join(map(str, choice)) if _is_list(choice) else choice
    return label


def _is_list(choice: object) -> bool:
    return isinstance(choice, list | tuple)


def _odd(choice: Any) -> bool:
    if _is_list(choice):
        return not choice or any(_is_list(item) or _odd(item) for item in choice)
    return not (choice is None or isinstance(choice, bool | str) or is_number(choice))
