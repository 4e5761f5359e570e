"""A search space: named parameters, which of their combinations make sense, and which are the same.

It holds no data and builds no network; the module that defines a space offers `build_model` for that.
"""

import hashlib
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.errors import (
    InvalidConfigurationError,
    InvalidParameterError,
    InvalidSpaceError,
    did_you_mean,
)
from search_spaces.parameters import Parameter, Role, parameter_from_json

if TYPE_CHECKING:
    from numpy.random import Generator
    from optuna.distributions import BaseDistribution

__all__ = ["CanonicalForm", "Refusal", "SearchSpace"]

CanonicalForm: TypeAlias = Callable[[Configuration], Mapping[str, JsonScalar]]
"""Turns every configuration of one network into the same configuration."""
Refusal: TypeAlias = Callable[[Configuration], str | None]
"""Says why a valid configuration describes nothing that can be trained, or None."""


class SearchSpace:
    """What a search may choose from.

    Args:
        name: how people refer to it; a module of the catalogue defines the space of its own name.
        parameters: name -> parameter; the order is the order of every configuration.
        task: who trains it: a module of the trainers' tasks, or an import path `module:Class`.
        defaults: a complete configuration that is known to be sensible; None: there is none.
        canonical: names one configuration among those that describe the same network; None: all differ.
        refuse: tells infeasible configurations from feasible ones; None: all are feasible.
        description: one sentence for lists of spaces.

    Raises:
        InvalidSpaceError: there are no parameters, a name is not a Python identifier, or the defaults are
            not valid or refused.

    Example:
        >>> from search_spaces.parameters import Float
        >>> space = SearchSpace("tiny", {"learning_rate": Float(low=1e-4, high=1e-1, log=True)})
        >>> space.validate({"learning_rate": 0.01})
        Configuration(learning_rate=0.01)
    """

    __slots__ = ("_canonical", "_parameters", "_refuse", "defaults", "description", "name", "task")

    def __init__(
        self,
        name: str,
        parameters: Mapping[str, Parameter],
        *,
        task: str = "image_classification",
        defaults: Mapping[str, JsonScalar] | None = None,
        canonical: CanonicalForm | None = None,
        refuse: Refusal | None = None,
        description: str = "",
    ) -> None:
        """Check the names and the defaults; copy the parameters."""
        problems = [f"{key!r} is no identifier" for key in (name, *parameters) if not key.isidentifier()]
        if not parameters:
            problems.append("there are no parameters; give at least one")
        if problems:
            raise InvalidSpaceError(f"search space {name!r}: {'; '.join(problems)}")
        self.name = name
        self._parameters = dict(parameters)
        self.task = task
        self.description = description
        self._canonical = canonical
        self._refuse = refuse
        self.defaults = None if defaults is None else self._checked_defaults(defaults)

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Name -> parameter, in the order of every configuration; read-only."""
        return MappingProxyType(self._parameters)

    def sample(self, rng: "Generator") -> Configuration:
        """Draw every parameter on its own; what comes is valid, but may be infeasible (see `refusal`)."""
        return Configuration({name: parameter.sample(rng) for name, parameter in self._parameters.items()})

    def validate(self, configuration: Mapping[str, JsonScalar]) -> Configuration:
        """Return the configuration in this space's order, each value in its one spelling.

        Raises:
            InvalidConfigurationError: a parameter is missing, unknown or has a value that is not allowed; all
                mistakes are listed.
        """
        problems = [self._unknown(name) for name in configuration if name not in self._parameters]
        for name, parameter in self._parameters.items():
            if name not in configuration:
                problems.append(f"{name} is missing")
            elif problem := parameter.problem(configuration[name]):
                problems.append(f"{name}={configuration[name]!r} {problem}")
        if problems:
            raise InvalidConfigurationError(self.name, problems)
        return Configuration({name: p.normalise(configuration[name]) for name, p in self._parameters.items()})

    def fitting_part(self, configuration: Mapping[str, JsonScalar]) -> Configuration:
        """Return the parameters that are of this space with their allowed values, and leave out the rest."""
        return Configuration(
            {
                name: value
                for name, value in configuration.items()
                if name in self._parameters and self._parameters[name].problem(value) is None
            }
        )

    def mutate(
        self, configuration: Mapping[str, JsonScalar], rng: "Generator", names: Collection[str] | None = None
    ) -> Configuration:
        """Change exactly one parameter to another value: one edge of a cell, or one hyperparameter.

        Args:
            configuration: a valid one, which stays as it is.
            rng: draws the parameter (all are equally likely) and its new value.
            names: the parameters that may change; None: all.

        Raises:
            InvalidConfigurationError: the configuration is not valid in this space.
            ValueError: a name is unknown, or none of the parameters has a second value.
        """
        parent = self.validate(configuration)
        mutable = [name for name in self._known(names) if self._parameters[name].size() != 1]
        if not mutable:
            raise ValueError(
                f"no parameter of {sorted(names or self._parameters)} has a second value (space {self.name!r})"
            )
        name = mutable[int(rng.integers(len(mutable)))]
        return parent.replace(**{name: self._parameters[name].mutate(parent[name], rng)})

    def neighbours(
        self, configuration: Mapping[str, JsonScalar], names: Collection[str] | None = None
    ) -> Iterator[Configuration]:
        """Yield the configurations that differ in one parameter, by one choice or one step.

        Raises:
            InvalidConfigurationError: the configuration is not valid in this space.
            ValueError: a name is unknown.
        """
        centre = self.validate(configuration)
        for name in self._known(names):
            for value in self._parameters[name].neighbours(centre[name]):
                yield centre.replace(**{name: value})

    def canonical(self, configuration: Mapping[str, JsonScalar]) -> Configuration:
        """Return the one configuration that stands for all that describe the same network and training.

        Raises:
            InvalidConfigurationError: the configuration, or the space's canonical form of it, is not valid.
        """
        valid = self.validate(configuration)
        return valid if self._canonical is None else self.validate(self._canonical(valid))

    def key(self, configuration: Mapping[str, JsonScalar]) -> str:
        """Return 32 hexadecimal digits that are equal for equal canonical forms, on every machine.

        The SHA-256 of the canonical form as JSON with sorted names; JSON spells floats as `repr` does, the
        shortest decimal that reads back equal, and tells 1, 1.0, true and "1" apart.

        Raises:
            InvalidConfigurationError: the configuration is not valid in this space.
        """
        values = self.canonical(configuration).as_dict()
        text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def refusal(self, configuration: Mapping[str, JsonScalar]) -> str | None:
        """Return why the configuration cannot be trained, such as `no path from input to output`, or None.

        Raises:
            InvalidConfigurationError: the configuration is not valid in this space.
        """
        valid = self.validate(configuration)
        return None if self._refuse is None else self._refuse(valid)

    def without(self, names: Collection[str]) -> "SearchSpace":
        """Return this space without some of its parameters, which have one value elsewhere.

        What names and refuses configurations goes on doing so: it is given the defaults of what has left.

        Raises:
            InvalidSpaceError: nothing is left, or there are such rules, and no defaults to give to them.
            ValueError: a name is unknown.
        """
        leaving, defaults = self._known(names), self.defaults
        if not leaving:
            return self
        if defaults is None and (self._canonical or self._refuse):
            raise InvalidSpaceError(
                f"search space {self.name!r}: its rules need a value of {', '.join(leaving)}; give the space defaults"
            )
        given = {} if defaults is None else {name: defaults[name] for name in leaving}

        def with_given(configuration: Configuration) -> Configuration:
            return Configuration({**given, **configuration})

        def canonical(rule: CanonicalForm, configuration: Configuration) -> Mapping[str, JsonScalar]:
            return {n: value for n, value in rule(with_given(configuration)).items() if n not in leaving}

        def refuse(rule: Refusal, configuration: Configuration) -> str | None:
            return rule(with_given(configuration))

        return SearchSpace(
            self.name,
            {name: parameter for name, parameter in self._parameters.items() if name not in leaving},
            task=self.task,
            defaults=None if defaults is None else {n: value for n, value in defaults.items() if n not in leaving},
            canonical=None if self._canonical is None else partial(canonical, self._canonical),
            refuse=None if self._refuse is None else partial(refuse, self._refuse),
            description=self.description,
        )

    def size(self) -> int | None:
        """Return the number of configurations, infeasible and equal ones too; None when it is infinite."""
        sizes = [parameter.size() for parameter in self._parameters.values()]
        finite = [size for size in sizes if size is not None]
        return math.prod(finite) if len(finite) == len(sizes) else None

    def names(self, role: Role | None = None) -> tuple[str, ...]:
        """Return the names of the parameters, those of one role or all."""
        return tuple(name for name, p in self._parameters.items() if role is None or p.role == role)

    def distributions(self) -> "dict[str, BaseDistribution]":
        """Return name -> Optuna's distribution of the same values."""
        return {name: parameter.distribution() for name, parameter in self._parameters.items()}

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-safe description, stored beside a study; hooks are noted by whether they exist."""
        return {
            "name": self.name,
            "task": self.task,
            "description": self.description,
            "parameters": {name: parameter.to_json() for name, parameter in self._parameters.items()},
            "defaults": None if self.defaults is None else self.defaults.as_dict(),
            "has_canonical": self._canonical is not None,
            "has_refuse": self._refuse is not None,
        }

    @classmethod
    def from_json(cls, description: Mapping[str, Any]) -> "SearchSpace":
        """Build the described space without its hooks: enough to read a study and to compare versions.

        Raises:
            InvalidSpaceError: the description lacks something or describes what cannot be.
        """
        try:
            return cls(
                description["name"],
                {name: parameter_from_json(item) for name, item in description["parameters"].items()},
                task=description["task"],
                defaults=description["defaults"],
                description=description["description"],
            )
        except KeyError as error:
            raise InvalidSpaceError(f"the description of a search space lacks {error}") from error
        except InvalidParameterError as error:
            raise InvalidSpaceError(f"search space {description['name']!r}: {error}") from error

    def __repr__(self) -> str:
        return f"SearchSpace({self.name!r}, {len(self._parameters)} parameters, task={self.task!r})"

    def _checked_defaults(self, defaults: Mapping[str, JsonScalar]) -> Configuration:
        try:
            valid = self.validate(defaults)
        except InvalidConfigurationError as error:
            raise InvalidSpaceError(f"search space {self.name!r}: its defaults are wrong: {error}") from error
        if reason := self.refusal(valid):
            raise InvalidSpaceError(f"search space {self.name!r}: its defaults are wrong: {reason}")
        return valid

    def _known(self, names: Collection[str] | None) -> tuple[str, ...]:
        if names is None:
            return tuple(self._parameters)
        if unknown := [self._unknown(name) for name in names if name not in self._parameters]:
            raise ValueError(f"{'; '.join(unknown)} (space {self.name!r})")
        return tuple(name for name in self._parameters if name in names)

    def _unknown(self, name: str) -> str:
        suggestion = did_you_mean(name, self._parameters)
        return f"no parameter {name!r};{suggestion} parameters: {', '.join(self._parameters)}"
