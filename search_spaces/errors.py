"""What can be wrong with a search space, a configuration or an architecture; messages name the way out."""

import difflib
from collections.abc import Iterable, Sequence

__all__ = [
    "InfeasibleArchitectureError",
    "InvalidConfigurationError",
    "InvalidParameterError",
    "InvalidSpaceError",
    "SpaceNameClashError",
    "SpaceRuleError",
    "UnknownSearchSpaceError",
    "did_you_mean",
]


class InvalidParameterError(ValueError):
    """A parameter cannot be searched as it was described; the message lists every mistake."""


class InvalidSpaceError(ValueError):
    """A search space, or the module that should define one, is not usable; every mistake is listed."""


class SpaceRuleError(InvalidSpaceError):
    """The own code of a search space, its `canonical` or its `refuse`, raises or returns what it must not.

    Attributes:
        space: name of the search space.
        fault: which code does what; the same for all configurations for which it does so.
        given: one of these.
    """

    def __init__(self, space: str, fault: str, given: str) -> None:
        """Keep what the code does, and with which configuration."""
        super().__init__(space, fault, given)
        self.space, self.fault, self.given = space, fault, given

    def __str__(self) -> str:
        """Return all in a sentence."""
        return f"search space {self.space!r}: its {self.fault} for {self.given}"


class InvalidConfigurationError(ValueError):
    """A configuration does not belong to its search space.

    Attributes:
        space: name of the search space.
        problems: every mistake of the configuration, one sentence each.
    """

    def __init__(self, space: str, problems: Sequence[str]) -> None:
        """Keep the mistakes and join them into one message."""
        super().__init__(space, tuple(problems))
        self.space = space
        self.problems = tuple(problems)

    def __str__(self) -> str:
        """Return all mistakes in one line, with the name of the space."""
        return f"{'; '.join(self.problems)} (space {self.space!r})"


class InfeasibleArchitectureError(ValueError):
    """A valid configuration describes a network that cannot exist, such as a cell without a path."""


class UnknownSearchSpaceError(KeyError):
    """No search space of that name exists.

    Attributes:
        reference: what was asked for.
        available: names that would have been found.
    """

    def __init__(self, reference: str, available: Iterable[str]) -> None:
        """Keep the reference and the names that exist."""
        super().__init__(reference, tuple(available))
        self.reference = reference
        self.available = tuple(available)

    def __str__(self) -> str:
        """Return the message, without KeyError's quotes."""
        suggestion = did_you_mean(self.reference, self.available)
        names = ", ".join(self.available) or "none"
        if self.reference.endswith((".py", ".yaml", ".yml")):
            suggestion += " there is no such file;"
        elif "." in self.reference or "/" in self.reference:
            suggestion += " a module of one's own is given by its import path, such as my_project.spaces.tiny;"
        return f"no search space {self.reference!r};{suggestion} available: {names}"


class SpaceNameClashError(ValueError):
    """Two installed search spaces have the same name, so that neither can be meant."""


def did_you_mean(given: str, names: Iterable[str]) -> str:
    """Return ` did you mean 'x'?` for the nearest of the names, or nothing when none is near."""
    nearest = difflib.get_close_matches(given, tuple(names), n=1)
    return f" did you mean {nearest[0]!r}?" if nearest else ""
