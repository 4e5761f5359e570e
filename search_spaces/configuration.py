"""A configuration: the immutable choice of one value for every parameter of a search space."""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

__all__ = ["Configuration", "JsonScalar"]

JsonScalar: TypeAlias = bool | int | float | str | None
"""A value that JSON, a database column and a command line can hold."""


class Configuration(Mapping[str, JsonScalar]):
    """Parameter name -> value; equal to any mapping with the same items, whatever their order.

    It knows no search space: `SearchSpace.validate` makes one whose values are allowed. As in every Python
    mapping `True == 1`, so two configurations that differ in nothing else compare equal; their keys
    (`SearchSpace.key`) differ.

    Example:
        >>> configuration = Configuration({"channels": 16, "dropout": 0.1})
        >>> configuration["channels"], configuration
        (16, Configuration(channels=16, dropout=0.1))
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, JsonScalar]) -> None:
        """Copy the values; the order of the names is kept for reading, and means nothing."""
        self._values: dict[str, JsonScalar] = dict(values)

    def as_dict(self) -> dict[str, JsonScalar]:
        """Return a new dict with the same items."""
        return dict(self._values)

    def replace(self, /, **values: JsonScalar) -> "Configuration":
        """Return a copy in which the named values are others."""
        return Configuration(self._values | values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __getitem__(self, name: str) -> JsonScalar:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __repr__(self) -> str:
        return f"Configuration({', '.join(f'{name}={value!r}' for name, value in self._values.items())})"
