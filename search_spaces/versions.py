"""Versions of a search space: what has changed between two of them, and what an old configuration is in the newest.

People edit a space and go on with its study. Parameters and their values are compared; hooks are code, which nothing
here can compare, and a description says nothing that a trial depends on.
"""

from collections.abc import Iterator, Mapping, Sequence

from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.errors import InvalidConfigurationError
from search_spaces.parameters import Categorical, Float, Integer, Parameter
from search_spaces.ranges import is_number
from search_spaces.space import SearchSpace
from search_spaces.structure import is_there

__all__ = ["SpaceHistory", "changes_between"]


def changes_between(older: SearchSpace, newer: SearchSpace) -> tuple[str, ...]:
    """Return every change of a space in words, one line each; () when nothing has changed."""
    changes = []
    if older.task != newer.task:
        changes.append(f"task: {older.task!r} -> {newer.task!r}")
    if older.name != newer.name:
        changes.append(f"name: {older.name!r} -> {newer.name!r}")
    for name, parameter in newer.parameters.items():
        if name in older.parameters:
            changes += [f"{name}: {text}" for text in _changes_of(older.parameters[name], parameter)]
        else:
            changes.append(f"{name} is new, {_old_trials(name, newer.defaults)}")
    changes += [f"{name} was removed" for name in older.parameters if name not in newer.parameters]
    return (*changes, *_changed_defaults(older, newer))


class SpaceHistory:
    """The versions that a study's space has had, and the present one: translates configurations of old trials.

    Args:
        earlier: the versions that the study has stored, oldest first; none for a new study.
        present: the space that is searched now.

    Example:
        >>> old = SearchSpace("tiny", {"operation": Categorical(choices=("conv3", "skip"))})
        >>> new = SearchSpace("tiny", {"operation": Categorical(choices=("conv3", "avg"))})
        >>> history = SpaceHistory([old], new)
        >>> history.changes
        ("operation: choice 'avg' is new", "operation: choice 'skip' was removed, trials with it are left out")
        >>> history.adopt({"operation": "conv3"}), history.adopt({"operation": "skip"})
        (Configuration(operation='conv3'), None)
    """

    def __init__(self, earlier: Sequence[SearchSpace], present: SearchSpace) -> None:
        """Note which parameters have come and gone."""
        self.earlier = tuple(earlier)
        self.present = present
        self._meant = dict(self._values_of_new_parameters())
        self._removed = {name for space in self.earlier for name in space.parameters} - set(present.parameters)

    @property
    def changes(self) -> tuple[str, ...]:
        """What has changed since the latest stored version, one line each; () when none is stored."""
        return changes_between(self.earlier[-1], self.present) if self.earlier else ()

    @property
    def problems(self) -> tuple[str, ...]:
        """Why the study cannot go on with the present space, a sentence each; () when it can.

        Ranges, steps, scales, choices and roles may change: a value stays the value that it was, and the samplers use
        the present space. Refused is what would take the meaning from old trials: another task, another kind of
        parameter than in any version, and a new parameter whose value in old trials nobody knows. Refused are also two
        changes after which Optuna's plots fail, which draw a parameter as its first trial had it.
        """
        if not self.earlier:
            return ()
        problems = []
        if (old := self.earlier[-1].task) != self.present.task:
            problems.append(f"task: {old!r} -> {self.present.task!r} is another training; objectives of the two differ")
        for name, parameter in self.present.parameters.items():
            problems += dict.fromkeys(self._problems_of(name, parameter))
        return tuple(problems)

    def adopt(self, configuration: Mapping[str, JsonScalar]) -> Configuration | None:
        """Return an old trial's configuration as the present space would write it, or None where it cannot.

        Removed parameters are dropped. A parameter that is new gets the default that it had when it came: the value
        that was in effect before, as the person who added it has said. None: a value is no longer allowed, or the
        configuration is not of any version.
        """
        own = self.without_removed(configuration)
        try:
            return self.present.validate({**self._missing(own), **own})
        except InvalidConfigurationError:
            return None

    def without_removed(self, configuration: Mapping[str, JsonScalar]) -> Configuration:
        """Return the configuration without the parameters that an earlier version had and the present one has not."""
        return Configuration({name: value for name, value in configuration.items() if name not in self._removed})

    def _problems_of(self, name: str, parameter: Parameter) -> Iterator[str]:
        had = [space.parameters[name] for space in self.earlier if name in space.parameters]
        if name not in self.earlier[-1].parameters and self.present.defaults is None:
            yield (
                f"{name} is new, and nothing says which value old trials had in effect; give the space defaults that "
                f"hold this value of {name}"
            )
        for old in had:
            if type(old) is not type(parameter):
                yield f"{name}: {_kind(old)} -> {_kind(parameter)} is another kind of parameter; give it another name"
        if had:
            yield from _not_drawable(name, had[0], parameter)

    def _missing(self, configuration: Mapping[str, JsonScalar]) -> Mapping[str, JsonScalar]:
        """What an old trial had in effect for parameters that are new, and are there beside its other values."""
        missing: dict[str, JsonScalar] = {}
        for name, parameter in self.present.parameters.items():
            if name in self._meant and name not in configuration and is_there(parameter, {**missing, **configuration}):
                missing[name] = self._meant[name]
        return missing

    def _values_of_new_parameters(self) -> Iterator[tuple[str, JsonScalar]]:
        """Name -> default in the version by which the parameter came (the last time), where that is not the first."""
        versions = (*self.earlier, self.present)
        for name in self.present.parameters:
            absent = [index for index, space in enumerate(versions) if name not in space.parameters]
            came = versions[absent[-1] + 1] if absent else None
            if came is not None and came.defaults is not None:
                yield name, came.defaults[name]


def _old_trials(name: str, defaults: Configuration | None) -> str:
    if defaults is None:
        return "without a default that old trials could count as"
    return f"old trials count as {name}={defaults[name]!r} (the default)"


def _changes_of(old: Parameter, new: Parameter) -> list[str]:
    if isinstance(old, Categorical) and isinstance(new, Categorical):
        texts = _changed_choices(old, new)
    elif isinstance(old, Float | Integer) and isinstance(new, type(old)):
        texts = _changed_range(old, new)
    else:
        texts = [f"{_kind(old)} -> {_kind(new)}"]
    texts += _changed_dependencies(old, new)
    return texts if old.role == new.role else [*texts, f"role {old.role} -> {new.role}"]


def _changed_dependencies(old: Parameter, new: Parameter) -> Iterator[str]:
    if old.condition != new.condition:
        yield f"there when {old.condition or 'ever'} -> when {new.condition or 'ever'}, trials that differ are left out"
    for side in ("at_least", "at_most"):
        before, now = getattr(old, side, None), getattr(new, side, None)
        if before != now:
            yield f"{side.replace('_', ' ')} {before} -> {now}, trials outside are left out"


def _changed_choices(old: Categorical, new: Categorical) -> list[str]:
    texts = [f"choice {choice!r} is new" for choice in new.choices if old.problem(choice)]
    texts += [
        f"choice {choice!r} was removed, trials with it are left out" for choice in old.choices if new.problem(choice)
    ]
    if not texts and old.choices != new.choices:
        texts.append(f"order of the choices {_listed(old)} -> {_listed(new)}")
    if old.ordered != new.ordered:
        texts.append("the choices are ordered now" if new.ordered else "the choices are no longer ordered")
    return texts


def _changed_range(old: Float | Integer, new: Float | Integer) -> list[str]:
    texts = []
    if (old.low, old.high) != (new.low, new.high):
        texts.append(f"range {_range(old)} -> {_range(new)} ({_direction(old, new)})")
    if old.log != new.log:
        texts.append(f"scale {_scale(old)} -> {_scale(new)}")
    if old.step != new.step:
        texts.append(f"step {_step(old)} -> {_step(new)}{'' if new.step is None else ', trials between are left out'}")
    return texts


def _direction(old: Float | Integer, new: Float | Integer) -> str:
    if new.low <= old.low and old.high <= new.high:
        return "wider"
    left_out = "trials outside are left out"
    return f"narrower, {left_out}" if old.low <= new.low and new.high <= old.high else f"moved, {left_out}"


def _changed_defaults(older: SearchSpace, newer: SearchSpace) -> Iterator[str]:
    old, new = older.defaults, newer.defaults
    if old is None or new is None:
        if old is not new:
            yield "defaults are new" if old is None else "the defaults were removed"
        return
    for name in new:
        if name in old and (type(old[name]), old[name]) != (type(new[name]), new[name]):
            yield f"{name}: default {old[name]!r} -> {new[name]!r}"


def _not_drawable(name: str, first: Parameter, new: Parameter) -> Iterator[str]:
    """Optuna's plots take the axis from the first trial, and fail where a later value has no place on it."""
    if isinstance(first, Categorical) and isinstance(new, Categorical):
        odd = [choice for choice in new.choices if not is_number(choice)]
        if odd and all(map(is_number, first.choices)):
            yield (
                f"{name}: its choices were numbers, and {', '.join(map(repr, odd))} is none, so that Optuna could no "
                "longer draw the study; give a number, or another name to the new parameter"
            )
    elif isinstance(first, Float | Integer) and isinstance(new, Float | Integer) and first.log and new.low <= 0:
        yield (
            f"{name}: its scale was log, and {new.low!r} has no logarithm, so that Optuna could no longer draw the "
            "study; begin the range above 0, or give the new parameter another name"
        )


def _kind(parameter: Parameter) -> str:
    if isinstance(parameter, Categorical):
        return f"choices {_listed(parameter)}"
    return f"{'float' if isinstance(parameter, Float) else 'integer'} {_range(parameter)}"


def _listed(parameter: Categorical) -> str:
    return "|".join(map(str, parameter.choices))


def _range(parameter: Float | Integer) -> str:
    return f"{parameter.low!r}..{parameter.high!r}"


def _scale(parameter: Float | Integer) -> str:
    return "log" if parameter.log else "linear"


def _step(parameter: Float | Integer) -> str:
    return "none" if parameter.step is None else repr(parameter.step)
