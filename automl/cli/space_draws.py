"""Random configurations of a space and what becomes of them: made, infeasible, or a fault of a person's code."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from search_spaces.errors import (
    InfeasibleArchitectureError,
    InvalidConfigurationError,
    InvalidSpaceError,
    SpaceRuleError,
)
from search_spaces.own_code import OWN_CODE_ERRORS, error_in_words

if TYPE_CHECKING:
    from search_spaces.configuration import Configuration
    from search_spaces.space import SearchSpace

__all__ = ["Tried", "check_hooks", "check_refusal", "drawn", "fault_in_words", "tried"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried(Generic[_T]):
    """What has become of configurations.

    Attributes:
        made: each that could be made, with what was made of it.
        infeasible: why others describe nothing that can be trained.
        faults: what was raised for the rest -> for which of them; the first one first.
    """

    made: "list[tuple[Configuration, _T]]" = field(default_factory=list)
    infeasible: list[str] = field(default_factory=list)
    faults: "dict[str, list[Configuration]]" = field(default_factory=dict)

    @property
    def total(self) -> int:
        """How many there are."""
        return len(self.made) + len(self.infeasible) + sum(map(len, self.faults.values()))

    def faults_in_words(self) -> Sequence[str]:
        """Return each fault once, with the number of its configurations and the first of them."""
        return [
            f"{fault} ({len(of)} of {self.total} configurations, such as {of[0]})" for fault, of in self.faults.items()
        ]


def drawn(space: "SearchSpace", seed: int) -> "Iterator[Configuration]":
    """Draw configurations for ever.

    Raises:
        InvalidSpecError: the space's bounds leave nothing to draw.
    """
    import numpy as np

    from automl.errors import InvalidSpecError

    rng = np.random.default_rng(seed)
    while True:
        try:
            configuration = space.sample(rng)
        except InvalidConfigurationError as error:
            raise InvalidSpecError([f"no configuration can be drawn: {error}"], f"space '{space.name}'") from error
        yield configuration


def tried(
    configurations: "Iterable[Configuration]",
    make: "Callable[[Configuration], _T]",
    *,
    wanted: int | None = None,
    key: "Callable[[Configuration], Hashable] | None" = None,
) -> Tried[_T]:
    """Make something of each configuration; whatever is raised meanwhile is told, and the next one is tried.

    Args:
        configurations: in this order.
        make: raises InfeasibleArchitectureError where there is nothing to make; may raise anything else.
        wanted: ends once so many were made; None: all are tried.
        key: equal for those of which only the first is tried; may raise, too. None: all differ.
    """
    found: Tried[_T] = Tried()
    seen: set[Hashable] = set()
    for configuration in configurations:
        try:
            own = None if key is None else key(configuration)
            if own is not None and own in seen:
                continue
            seen.add(own)
            found.made.append((configuration, make(configuration)))
        except InfeasibleArchitectureError as error:
            found.infeasible.append(str(error))
        except OWN_CODE_ERRORS as error:
            found.faults.setdefault(fault_in_words(error), []).append(configuration)
        if len(found.made) == wanted:
            break
    return found


def check_refusal(space: "SearchSpace", configuration: "Configuration") -> None:
    """Ask a space whether it refuses a configuration.

    Raises:
        InfeasibleArchitectureError: it does.
        SpaceRuleError: its `refuse` fails.
    """
    if (reason := space.refusal(configuration)) is not None:
        raise InfeasibleArchitectureError(reason)


def check_hooks(space: "SearchSpace", configuration: "Configuration") -> None:
    """Ask of a space all that a search asks of it about a configuration, but whether it is refused.

    Raises:
        SpaceRuleError: its `canonical` fails.
        InvalidSpaceError: its canonical form has another one itself, or the configuration is not read back from
            numbers.
    """
    canonical = space.canonical(configuration)
    if space.key(canonical) != space.key(configuration):
        raise InvalidSpaceError(
            "its `canonical` names, for the configuration that it has named, another one; for all configurations of "
            "one network it must name the same"
        )
    if space.decode(space.encode(configuration)) != configuration:
        raise InvalidSpaceError("the configuration is not read back from its numbers")


def fault_in_words(error: Exception | SystemExit) -> str:
    """Return what an error says; those of a space are sentences, all others need their kind."""
    if isinstance(error, SpaceRuleError):
        return f"its {error.fault}"
    is_sentence = isinstance(error, InvalidSpaceError | InvalidConfigurationError)
    return str(error) if is_sentence else error_in_words(error)
