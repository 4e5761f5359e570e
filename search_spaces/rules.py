"""The code that a space has beside its parameters: what names equal configurations, and what refuses some."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.errors import SpaceRuleError
from search_spaces.own_code import OWN_CODE_ERRORS, error_in_words
from search_spaces.structure import Parameters, is_there

__all__ = ["CanonicalForm", "Refusal", "Rules"]

CanonicalForm: TypeAlias = Callable[[Configuration], Mapping[str, JsonScalar]]
"""Turns every configuration of one network into the same configuration."""
Refusal: TypeAlias = Callable[[Configuration], str | None]
"""Says why a valid configuration describes nothing that can be trained, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of one space; what is wrong with them is told as a mistake of the space.

    Attributes:
        space: its name.
        canonical: names one configuration among equal ones; None: all differ.
        canonical_over: the parameters that `canonical` reads and changes; None: it may be any.
        refuse: tells infeasible configurations from feasible ones; None: all are feasible.
    """

    space: str
    canonical: CanonicalForm | None
    canonical_over: tuple[str, ...] | None
    refuse: Refusal | None

    def form(self, configuration: Configuration) -> Mapping[str, JsonScalar]:
        """Return the canonical form as the rule names it; nobody has checked it yet.

        Raises:
            SpaceRuleError: the rule raises, or returns something else.
        """
        if self.canonical is None:
            return configuration
        try:
            named = self.canonical(configuration)
        except OWN_CODE_ERRORS as error:
            raise self.mistake("canonical", f"raises {error_in_words(error)}", configuration) from error
        if not isinstance(named, Mapping):
            raise self.mistake("canonical", f"returns {named!r}, which is no configuration,", configuration)
        return named

    def reason(self, configuration: Configuration) -> str | None:
        """Return why a configuration cannot be trained, or None.

        Raises:
            SpaceRuleError: the rule raises, or returns something else.
        """
        if self.refuse is None:
            return None
        try:
            reason = self.refuse(configuration)
        except OWN_CODE_ERRORS as error:
            raise self.mistake("refuse", f"raises {error_in_words(error)}", configuration) from error
        if reason is not None and not isinstance(reason, str):
            raise self.mistake("refuse", f"returns {reason!r}, which is neither a sentence nor None,", configuration)
        return reason

    def mistake(self, rule: str, what: str, configuration: Mapping[str, JsonScalar]) -> SpaceRuleError:
        """Return the error that names a rule, what it does, and with which configuration."""
        values = ", ".join(f"{name}={value!r}" for name, value in configuration.items())
        return SpaceRuleError(self.space, f"`{rule}` {what}", values)

    def fixed(self, parameters: Parameters, constants: Mapping[str, JsonScalar]) -> "Rules":
        """Return the rules of what is left when some parameters have one value; they are given these values, too."""
        over = self.canonical_over
        return replace(
            self,
            canonical=None if self.canonical is None else partial(_canonical, self.canonical, parameters, constants),
            canonical_over=None if over is None else tuple(name for name in over if name not in constants),
            refuse=None if self.refuse is None else partial(_refuse, self.refuse, parameters, constants),
        )


def _canonical(
    rule: CanonicalForm, parameters: Parameters, constants: Mapping[str, JsonScalar], configuration: Configuration
) -> Mapping[str, JsonScalar]:
    named = rule(_whole(parameters, constants, configuration))
    return {name: value for name, value in named.items() if name not in constants}


def _refuse(
    rule: Refusal, parameters: Parameters, constants: Mapping[str, JsonScalar], configuration: Configuration
) -> str | None:
    return rule(_whole(parameters, constants, configuration))


def _whole(parameters: Parameters, constants: Mapping[str, JsonScalar], configuration: Configuration) -> Configuration:
    """The configuration with the constants that are there beside its values."""
    values: dict[str, JsonScalar] = {}
    for name, parameter in parameters.items():
        if name in configuration:
            values[name] = configuration[name]
        elif name in constants and is_there(parameter, values):
            values[name] = constants[name]
    return Configuration(values)
