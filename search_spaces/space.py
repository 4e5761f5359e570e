"""A search space: named parameters, which of their combinations make sense, and which are the same.

It holds no data and builds no network; the module that defines a space offers `build_model` for that.
"""

import hashlib
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.counting import every_configuration, number_of_configurations
from search_spaces.errors import (
    InvalidConfigurationError,
    InvalidParameterError,
    InvalidSpaceError,
    did_you_mean,
)
from search_spaces.parameters import Categorical, Parameter, PlainValue, Role, parameter_from_json
from search_spaces.structure import bound_problem, dependents, fixed_parameters, is_there, structure_problems
from search_spaces.walks import NoValueLeftError, completed, crossed, drawn, middle, mutated, near

if TYPE_CHECKING:
    from numpy.random import Generator
    from optuna.distributions import BaseDistribution

__all__ = ["CanonicalForm", "Refusal", "SearchSpace"]

CanonicalForm: TypeAlias = Callable[[Configuration], Mapping[str, JsonScalar]]
"""Turns every configuration of one network into the same configuration."""
Refusal: TypeAlias = Callable[[Configuration], str | None]
"""Says why a valid configuration describes nothing that can be trained, or None."""

MOST_COUNTED = 200_000
"""Configurations that are looked at one by one to count the different ones among them."""


class SearchSpace:
    """What a search may choose from.

    A parameter may depend on those before it: it is there only `when` they have given values, and its range may be
    bounded by theirs. A configuration has the parameters that are there, and no other.

    Args:
        name: how people refer to it; a module of the catalogue defines the space of its own name.
        parameters: name -> parameter, or a constant; the order is the order of every configuration.
        task: who trains it: a module of the trainers' tasks, or an import path `module:Class`.
        defaults: a complete configuration that is known to be sensible; None: there is none.
        canonical: names one configuration among those that describe the same network; None: all differ.
        canonical_over: the parameters that `canonical` reads and changes; None: it may be any.
        refuse: tells infeasible configurations from feasible ones; None: all are feasible.
        description: one sentence for lists of spaces.
        notes: what a person should know of how the space was read, a sentence each; of ranges it is known anyway.

    Raises:
        InvalidSpaceError: there are no parameters, a name is not a Python identifier, a condition or a bound speaks of
            what does not come before it, or the defaults are not valid or refused; all mistakes are listed.

    Example:
        >>> from search_spaces.parameters import Categorical, Float
        >>> space = SearchSpace(
        ...     "tiny",
        ...     {
        ...         "optimizer": Categorical(choices=("sgd", "adam")),
        ...         "momentum": Float(low=0.5, high=0.99, when={"optimizer": "sgd"}),
        ...     },
        ... )
        >>> space.validate({"optimizer": "adam"})
        Configuration(optimizer='adam')
    """

    __slots__ = (
        "_canonical",
        "_canonical_over",
        "_depends",
        "_notes",
        "_parameters",
        "_refuse",
        "_size",
        "defaults",
        "description",
        "name",
        "task",
    )

    def __init__(
        self,
        name: str,
        parameters: Mapping[str, Parameter | JsonScalar],
        *,
        task: str = "image_classification",
        defaults: Mapping[str, JsonScalar] | None = None,
        canonical: CanonicalForm | None = None,
        canonical_over: Collection[str] | None = None,
        refuse: Refusal | None = None,
        description: str = "",
        notes: Sequence[str] = (),
    ) -> None:
        """Check the names, how parameters depend on each other, and the defaults; copy the parameters."""
        problems = [f"{key!r} is no identifier" for key in (name, *parameters) if not key.isidentifier()]
        if not parameters:
            problems.append("there are no parameters; give at least one")
        self._parameters = {key: _parameter(given) for key, given in parameters.items()}
        problems += structure_problems(self._parameters)
        if problems:
            raise InvalidSpaceError(f"search space {name!r}: {'; '.join(problems)}")
        self.name = name
        self.task = task
        self.description = description
        self._notes = tuple(notes)
        self._canonical = canonical
        self._canonical_over = None if canonical_over is None else tuple(canonical_over)
        self._refuse = refuse
        self._size = number_of_configurations(self._parameters)
        self._depends = any(dependents(self._parameters, key) for key in self._parameters)
        self.defaults = None if defaults is None else self._checked_defaults(defaults)

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Name -> parameter, in the order of every configuration; read-only."""
        return MappingProxyType(self._parameters)

    @property
    def is_conditional(self) -> bool:
        """Whether some parameters depend on others: on their being there, or on their values."""
        return self._depends

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of how the parameters were read, a sentence each."""
        numbers = ((name, p) for name, p in self._parameters.items() if not isinstance(p, Categorical))
        return (*self._notes, *(f"{name}: {parameter.note}" for name, parameter in numbers if parameter.note))

    def sample(self, rng: "Generator") -> Configuration:
        """Draw every parameter that is there from its range; what comes is valid, but may be infeasible (`refusal`)."""
        if not self._depends:
            return Configuration({name: parameter.sample(rng) for name, parameter in self._parameters.items()})
        return self.complete({}, rng)

    def complete(self, part: Mapping[str, JsonScalar], rng: "Generator") -> Configuration:
        """Return a configuration that keeps what it can of a part, and draws the rest.

        Args:
            part: allowed values of some parameters. Of a parameter that is not there in the end the value is dropped;
                one outside the bounds that other parameters set is moved to the nearer end.
            rng: draws what is missing.

        Raises:
            InvalidConfigurationError: a name is unknown, a value is not allowed, or others leave a parameter none.
        """
        problems = [self._unknown(name) for name in part if name not in self._parameters]
        problems += [text for name, value in part.items() if (text := self._problem_of(name, value)) is not None]
        if problems:
            raise InvalidConfigurationError(self.name, problems)
        kept = {name: self._parameters[name].normalise(value) for name, value in part.items()}
        try:
            return drawn(self._parameters, kept, rng)
        except NoValueLeftError as error:
            raise InvalidConfigurationError(self.name, [str(error)]) from error

    def validate(self, configuration: Mapping[str, PlainValue]) -> Configuration:
        """Return the configuration in this space's order, each value in its one spelling.

        Raises:
            InvalidConfigurationError: a parameter is missing, unknown, there although it must not be, or has a value
                that is not allowed; all mistakes are listed.
        """
        problems = [self._unknown(name) for name in configuration if name not in self._parameters]
        values: dict[str, JsonScalar] = {}
        for name, parameter in self._parameters.items():
            if parameter.when is not None and not is_there(parameter, values):
                if name in configuration:
                    problems.append(_not_there(name, parameter, configuration, values))
            elif name not in configuration:
                problems.append(f"{name} is missing")
            elif problem := parameter.problem(configuration[name]):
                problems.append(f"{name}={configuration[name]!r} {problem}")
            else:
                values[name] = parameter.normalise(configuration[name])
                if self._depends and (problem := bound_problem(parameter, values[name], values)):
                    problems.append(f"{name}={configuration[name]!r} {problem}")
        if problems:
            raise InvalidConfigurationError(self.name, problems)
        return Configuration(values)

    def fitting_part(self, configuration: Mapping[str, JsonScalar]) -> Configuration:
        """Return the parameters that are of this space with their allowed values, and leave out the rest."""
        return Configuration(
            {
                name: value
                for name, value in configuration.items()
                if name in self._parameters and self._parameters[name].problem(value) is None
            }
        )

    def lacks(self, part: Mapping[str, JsonScalar]) -> tuple[str, ...]:
        """Return the names that are certainly missing: those that are there whatever the others' values are."""
        known = {name: value for name, value in part.items() if self._problem_of(name, value) is None}
        return tuple(
            name for name, parameter in self._parameters.items() if name not in part and is_there(parameter, known)
        )

    def mutate(
        self, configuration: Mapping[str, JsonScalar], rng: "Generator", names: Collection[str] | None = None
    ) -> Configuration:
        """Change exactly one parameter to another value: one edge of a cell, or one hyperparameter.

        What the change brings in is drawn, what it takes out is dropped, and what it bounds is moved into its bounds.

        Args:
            configuration: a valid one, which stays as it is.
            rng: draws the parameter (all are equally likely) and its new value.
            names: the parameters that may change; None: all.

        Raises:
            InvalidConfigurationError: the configuration is not valid in this space.
            ValueError: a name is unknown, or none of the parameters has a second value.
        """
        child = mutated(self._parameters, self.validate(configuration), rng, self._known(names))
        if child is None:
            raise ValueError(
                f"no parameter of {sorted(names or self._parameters)} has a second value (space {self.name!r})"
            )
        return child

    def crossover(
        self, first: Mapping[str, JsonScalar], second: Mapping[str, JsonScalar], rng: "Generator"
    ) -> Configuration:
        """Return a child with each value from one of two parents, both equally likely, and valid like them.

        Source: uniform crossover (Syswerda 1989). What neither parent has, as no value of it was needed, is drawn.

        Raises:
            InvalidConfigurationError: a parent is not valid in this space.
        """
        return crossed(self._parameters, self.validate(first), self.validate(second), rng)

    def neighbours(
        self, configuration: Mapping[str, JsonScalar], names: Collection[str] | None = None
    ) -> Iterator[Configuration]:
        """Yield the configurations that differ in one parameter, by one choice or one step.

        What the change brings in has the value of the defaults, or the middle of its range.

        Raises:
            InvalidConfigurationError: the configuration is not valid in this space.
            ValueError: a name is unknown.
        """
        yield from near(self._parameters, self.validate(configuration), self._known(names), self._usual)

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

    def plain(self, configuration: Mapping[str, JsonScalar]) -> Mapping[str, PlainValue]:
        """Return the values as whoever trains with them reads them: a list in place of its label."""
        return {
            name: parameter.plain(value) if isinstance(parameter := self._parameters.get(name), Categorical) else value
            for name, value in configuration.items()
        }

    def filled(self, part: Mapping[str, JsonScalar]) -> Configuration:
        """Return a configuration that keeps what it can of a part, the rest as the defaults have it, or in the middle.

        Args:
            part: as for `complete`; but a value that is not allowed, or a name that is unknown, is left out.

        Raises:
            InvalidConfigurationError: the values leave a parameter none.
        """
        kept = {name: self._parameters[name].normalise(value) for name, value in self.fitting_part(part).items()}
        try:
            return completed(self._parameters, kept, self._usual)
        except NoValueLeftError as error:
            raise InvalidConfigurationError(self.name, [str(error)]) from error

    def fixing(self, constants: Mapping[str, JsonScalar]) -> "SearchSpace":
        """Return what is left to search when some parameters have one value each, whatever the space knows of it.

        What depends on them is there, or gone, as with these values; what names and refuses configurations goes on
        doing so, and is given the constants, too.

        Raises:
            InvalidSpaceError: nothing is left.
            ValueError: a name is unknown.
        """
        if not self._known(list(constants)):
            return self
        left = fixed_parameters(self._parameters, constants)

        def canonical(rule: CanonicalForm, configuration: Configuration) -> Mapping[str, JsonScalar]:
            named = rule(Configuration({**constants, **configuration}))
            return {name: value for name, value in named.items() if name not in constants}

        def refuse(rule: Refusal, configuration: Configuration) -> str | None:
            return rule(Configuration({**constants, **configuration}))

        rest = SearchSpace(
            self.name,
            left,
            task=self.task,
            canonical=None if self._canonical is None else partial(canonical, self._canonical),
            canonical_over=self._canonical_over,
            refuse=None if self._refuse is None else partial(refuse, self._refuse),
            description=self.description,
            notes=self._notes,
        )
        if self.defaults is not None:
            rest.defaults = rest.filled(self.defaults)
            rest.defaults = None if rest.refusal(rest.defaults) else rest.defaults
        return rest

    def encode(self, configuration: Mapping[str, JsonScalar]) -> tuple[float, ...]:
        """Return a number for each parameter of the space, in its order, that `decode` reads.

        A number stands for itself, a choice for its place among the choices; NaN: the parameter is not there.

        Raises:
            InvalidConfigurationError: the configuration is not valid in this space.
        """
        valid = self.validate(configuration)
        return tuple(
            parameter.encoded(valid[name]) if name in valid else math.nan
            for name, parameter in self._parameters.items()
        )

    def decode(self, numbers: Sequence[float]) -> Configuration:
        """Return the configuration that `encode` has written.

        Raises:
            InvalidConfigurationError: the numbers are those of no valid configuration.
            ValueError: there are more or fewer numbers than parameters.
        """
        pairs = zip(self._parameters.items(), numbers, strict=True)
        return self.validate(
            {name: parameter.decoded(number) for (name, parameter), number in pairs if not math.isnan(number)}
        )

    def size(self) -> int | None:
        """Return the number of configurations, infeasible and equal ones too; None when it is infinite."""
        return self._size

    def every(self) -> Iterator[Configuration]:
        """Yield every configuration, infeasible and equal ones too, or nothing where they are infinitely many."""
        if self._size is not None:
            yield from every_configuration(self._parameters)

    def different(self) -> int | None:
        """Return how many different networks the architecture's parameters describe, infeasible ones too.

        None: infinitely many, or too many to be told apart one by one.
        """
        own = {name: p for name, p in self._parameters.items() if p.role == "architecture"}
        if not own or any(True for _ in structure_problems(own)):
            return None
        told = (
            own if self._canonical_over is None else {name: own[name] for name in own if name in self._canonical_over}
        )
        if self._canonical is None or not told:
            return number_of_configurations(own)
        count = number_of_configurations(told)
        if count is None or count > MOST_COUNTED or any(dependents(own, name) - set(told) for name in told):
            return None
        forms = {Configuration(self._canonical(part)) for part in every_configuration(told)}
        others = number_of_configurations({name: p for name, p in own.items() if name not in told})
        return None if others is None else len(forms) * others

    def names(self, role: Role | None = None) -> tuple[str, ...]:
        """Return the names of the parameters, those of one role or all."""
        return tuple(name for name, p in self._parameters.items() if role is None or p.role == role)

    def dependents(self, name: str) -> frozenset[str]:
        """Return the parameters whose being there, or whose range, depends on one, also through others."""
        return dependents(self._parameters, name)

    def distributions(self) -> "dict[str, BaseDistribution]":
        """Return name -> Optuna's distribution of the same values, as if every parameter were there and unbounded."""
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

    def _problem_of(self, name: str, value: JsonScalar) -> str | None:
        problem = self._parameters[name].problem(value) if name in self._parameters else None
        return None if problem is None else f"{name}={value!r} {problem}"

    def _usual(self, name: str, parameter: Parameter) -> JsonScalar:
        """The value that stands for a parameter when nothing else asks for one."""
        if self.defaults is not None and name in self.defaults and parameter.problem(self.defaults[name]) is None:
            return self.defaults[name]
        return middle(parameter)

    def _known(self, names: Collection[str] | None) -> tuple[str, ...]:
        if names is None:
            return tuple(self._parameters)
        if unknown := [self._unknown(name) for name in names if name not in self._parameters]:
            raise ValueError(f"{'; '.join(unknown)} (space {self.name!r})")
        return tuple(name for name in self._parameters if name in names)

    def _unknown(self, name: str) -> str:
        suggestion = did_you_mean(name, self._parameters)
        return f"no parameter {name!r};{suggestion} parameters: {', '.join(self._parameters)}"


def _parameter(given: Parameter | JsonScalar) -> Parameter:
    return given if isinstance(given, Parameter) else Categorical(choices=(given,))


def _not_there(
    name: str, parameter: Parameter, given: Mapping[str, PlainValue], values: Mapping[str, JsonScalar]
) -> str:
    now = [f"{parent} is {values[parent]}" for parent in parameter.condition if parent in values]
    why = f" ({' and '.join(now)})" if now else ""
    return f"{name}={given[name]!r} is given, but it is there only when {parameter.condition}{why}; leave it out"
