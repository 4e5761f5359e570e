"""A search space: named parameters, which of their combinations make sense, and which are the same.

It holds no data and builds no network; the module that defines a space offers `build_model` for that.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import EllipsisType, MappingProxyType
from typing import TYPE_CHECKING, Any

from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.counting import every_configuration, number_of_configurations, number_of_different
from search_spaces.errors import InvalidConfigurationError, InvalidSpaceError
from search_spaces.fixing import fixed_parameters, spelled
from search_spaces.parameters import Categorical, Parameter, PlainValue, Role
from search_spaces.rules import CanonicalForm, Refusal, Rules
from search_spaces.soundness import name_problems, settled_conditions, structure_problems
from search_spaces.space_form import decoded, described, encoded, parts_of_description
from search_spaces.structure import Structure, dependents, is_there
from search_spaces.validation import checked, part_problems, unknown
from search_spaces.walks import NoValueLeftError, completed, crossed, drawn, foresighted, mutated, near

if TYPE_CHECKING:
    from numpy.random import Generator
    from optuna.distributions import BaseDistribution

__all__ = ["CanonicalForm", "Refusal", "SearchSpace"]


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
        InvalidSpaceError: there are no parameters, a name is no Python identifier or a word of its own, a condition or
            a bound speaks of what does not come before it or leaves a parameter nothing, or the defaults are not valid
            or refused; all mistakes are listed.

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

    __slots__ = ("_notes", "_parameters", "_rules", "_size", "_structure", "defaults", "description", "name", "task")

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
        problems = list(name_problems(name, list(parameters)))
        if not parameters:
            problems.append("there are no parameters; give at least one")
        given = {str(key): _parameter(value) for key, value in parameters.items()}
        problems += structure_problems(settled := settled_conditions(given))
        over = _names(canonical_over, "canonical_over", problems)
        problems += [f"canonical_over: {unknown(key, given)}" for key in over or () if key not in given]
        if problems:
            raise InvalidSpaceError(f"search space {name!r}: {'; '.join(problems)}")
        self.name = name
        self.task = task
        self.description = description
        self._notes = tuple(notes)
        self._parameters = settled
        self._structure = Structure.of(self._parameters)
        self._rules = Rules(space=name, canonical=canonical, canonical_over=over, refuse=refuse)
        self._size: int | EllipsisType | None = ...  # it is counted when someone asks
        self.defaults = None if defaults is None else self._checked_defaults(defaults)

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Name -> parameter, in the order of every configuration; read-only."""
        return MappingProxyType(self._parameters)

    @property
    def is_conditional(self) -> bool:
        """Whether some parameters depend on others: on their being there, or on their values."""
        return self._structure.depends

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of how the parameters were read, a sentence each."""
        own = (f"{name}: {parameter.note}" for name, parameter in self._parameters.items() if parameter.note)
        return (*self._notes, *own)

    def sample(self, rng: "Generator") -> Configuration:
        """Draw every parameter that is there from its range; what comes is valid, but may be infeasible (`refusal`).

        Raises:
            InvalidConfigurationError: in 100 draws the bounds left a parameter no value.
        """
        if not self._structure.depends:
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
        if problems := part_problems(self._parameters, part):
            raise InvalidConfigurationError(self.name, problems)
        kept = self._allowed(part)
        try:
            return drawn(self._structure, kept, rng)
        except NoValueLeftError as error:
            raise InvalidConfigurationError(self.name, [str(error)]) from error

    def validate(self, configuration: Mapping[str, PlainValue]) -> Configuration:
        """Return the configuration in this space's order, each value in its one spelling.

        Raises:
            InvalidConfigurationError: a parameter is missing, unknown, there although it must not be, or has a value
                that is not allowed; all mistakes are listed.
        """
        values, problems = checked(self._parameters, configuration)
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
        known = self._allowed(part)
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
        child = mutated(self._structure, self.validate(configuration), rng, self._known(names))
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
        return crossed(self._structure, self.validate(first), self.validate(second), rng)

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
            InvalidConfigurationError: the configuration is not valid.
            SpaceRuleError: the space's own code raises, or names what is not valid.
        """
        valid = self.validate(configuration)
        named = self._rules.form(valid)
        if named is valid:
            return valid
        try:
            return self.validate(named)
        except InvalidConfigurationError as error:
            what = f"names a configuration that is not valid ({'; '.join(error.problems)})"
            raise self._rules.mistake("canonical", what, valid) from error

    def key(self, configuration: Mapping[str, JsonScalar]) -> str:
        """Return 32 hexadecimal digits that are equal for equal canonical forms, on every machine.

        The SHA-256 of the canonical form as JSON with sorted names; JSON spells floats as `repr` does, the
        shortest decimal that reads back equal, and tells 1, 1.0, true and "1" apart.

        Raises:
            InvalidConfigurationError: the configuration is not valid in this space.
            SpaceRuleError: the space's own code does not name a canonical form.
        """
        values = self.canonical(configuration).as_dict()
        text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def refusal(self, configuration: Mapping[str, JsonScalar]) -> str | None:
        """Return why the configuration cannot be trained, such as `no path from input to output`, or None.

        Raises:
            InvalidConfigurationError: the configuration is not valid in this space.
            SpaceRuleError: the space's own code raises, or says something else.
        """
        return self._rules.reason(self.validate(configuration))

    def plain(self, configuration: Mapping[str, JsonScalar]) -> Mapping[str, PlainValue]:
        """Return the values as whoever trains with them reads them: a list in place of its label."""
        return {
            name: self._parameters[name].plain(value) if name in self._parameters else value
            for name, value in configuration.items()
        }

    def filled(self, part: Mapping[str, JsonScalar]) -> Configuration:
        """Return a configuration that keeps what it can of a part, the rest as the defaults have it, or in the middle.

        Args:
            part: as for `complete`; but a value that is not allowed, or a name that is unknown, is left out.

        Raises:
            InvalidConfigurationError: the values leave a parameter none.
        """
        kept = self._allowed(part)
        try:
            return completed(self._parameters, kept, self._usual)
        except NoValueLeftError:
            looking_ahead = foresighted(self._parameters, self._usual)
        try:
            return completed(self._parameters, kept, looking_ahead)
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
        constants = spelled(self._parameters, constants)
        rules = self._rules.fixed(self._parameters, constants)
        rest = SearchSpace(
            self.name,
            fixed_parameters(self._parameters, constants),
            task=self.task,
            description=self.description,
            notes=self._notes,
        )
        over = rules.canonical_over
        kept = None if over is None else tuple(name for name in over if name in rest.parameters)
        rest._rules = replace(rules, canonical_over=kept)
        rest.defaults = None if self.defaults is None else rest._feasible(self.defaults)
        return rest

    def encode(self, configuration: Mapping[str, JsonScalar]) -> tuple[float, ...]:
        """Return a number for each parameter of the space, in its order, that `decode` reads.

        A number stands for itself, a choice for its place among the choices; NaN: the parameter is not there.

        Raises:
            InvalidConfigurationError: the configuration is not valid in this space.
        """
        return encoded(self._parameters, self.validate(configuration))

    def decode(self, numbers: Sequence[float]) -> Configuration:
        """Return the configuration that `encode` has written.

        Raises:
            InvalidConfigurationError: the numbers are those of no valid configuration.
            ValueError: there are more or fewer numbers than parameters.
        """
        return self.validate(decoded(self.name, self._parameters, numbers))

    def size(self) -> int | None:
        """Return the number of configurations, infeasible and equal ones too.

        None: infinitely many, or their dependencies are too many to count them. It is counted once.
        """
        if isinstance(self._size, EllipsisType):
            self._size = number_of_configurations(self._parameters)
        return self._size

    def every(self) -> Iterator[Configuration]:
        """Yield every configuration, infeasible and equal ones too, or nothing where they are infinitely many."""
        if self.size() is not None:
            yield from every_configuration(self._parameters)

    def different(self) -> int | None:
        """Return how many different networks the architecture's parameters describe, infeasible ones too.

        None: infinitely many, or too many to be told apart one by one.

        Raises:
            SpaceRuleError: the space's own code does not name a canonical form.
        """
        return number_of_different(self._parameters, self._rules)

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
            **described(
                name=self.name,
                task=self.task,
                description=self.description,
                parameters=self._parameters,
                defaults=self.defaults,
            ),
            "has_canonical": self._rules.canonical is not None,
            "has_refuse": self._rules.refuse is not None,
        }

    @classmethod
    def from_json(cls, description: Mapping[str, Any]) -> "SearchSpace":
        """Build the described space without its hooks: enough to read a study and to compare versions.

        Raises:
            InvalidSpaceError: the description lacks something or describes what cannot be.
        """
        return cls(**parts_of_description(description))

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

    def _allowed(self, part: Mapping[str, JsonScalar]) -> dict[str, JsonScalar]:
        """The values of a part that are allowed, in the spelling of the space."""
        return {name: self._parameters[name].normalise(value) for name, value in self.fitting_part(part).items()}

    def _feasible(self, defaults: Configuration) -> Configuration | None:
        """Defaults of a wider space as this one has them; None: they are not feasible here."""
        try:
            own = self.filled(defaults)
        except InvalidConfigurationError:
            return None  # no sensible configuration is known beside the constants
        return None if self.refusal(own) else own

    def _usual(self, name: str, parameter: Parameter, values: Mapping[str, JsonScalar]) -> JsonScalar:
        """The value that stands for a parameter when nothing else asks for one."""
        if self.defaults is not None and name in self.defaults and parameter.problem(self.defaults[name]) is None:
            return self.defaults[name]
        return parameter.middle()

    def _known(self, names: Collection[str] | None) -> tuple[str, ...]:
        if names is None:
            return tuple(self._parameters)
        problems: list[str] = []
        given = _names(names, "names", problems) or ()
        problems += [unknown(name, self._parameters) for name in given if name not in self._parameters]
        if problems:
            raise ValueError(f"{'; '.join(problems)} (space {self.name!r})")
        return tuple(name for name in self._parameters if name in given)


def _names(given: Collection[str] | None, what: str, problems: list[str]) -> tuple[str, ...] | None:
    """Return names as a tuple; one text is no collection of names, and is noted as a problem."""
    if isinstance(given, str):
        problems.append(f"{what}={given!r} is one text; give a list of names")
        return ()
    return None if given is None else tuple(given)


def _parameter(given: Parameter | JsonScalar) -> Parameter:
    return given if isinstance(given, Parameter) else Categorical(choices=(given,))
