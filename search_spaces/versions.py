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
from search_spaces.space_changes import changes_between, kind_in_words, old_trials_may_have
from search_spaces.structure import is_there

__all__ = ["SpaceHistory", "changes_between"]


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
        """Note which parameters have gone."""
        self.earlier = tuple(earlier)
        self.present = present
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
        parameter than in any version, and a new parameter whose value in old trials nobody knows, unless no old trial
        has it since its condition asks for what is new. Refused are also two changes after which Optuna's plots fail,
        which draw a parameter as its first trial had it.
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

        Removed parameters are dropped. A parameter that the trial was without, since it is new or was not there beside
        the trial's other values, gets the default of the version in which it came to be there: the value that was in
        effect before, as the person who changed the space has said. None: there is no such default, a value is no
        longer allowed, or the configuration is not of any version.
        """
        own = self.without_removed(configuration)
        try:
            return self.present.validate({**self._missing(configuration), **own})
        except InvalidConfigurationError:
            return None

    def without_removed(self, configuration: Mapping[str, JsonScalar]) -> Configuration:
        """Return the configuration without the parameters that an earlier version had and the present one has not."""
        return Configuration({name: value for name, value in configuration.items() if name not in self._removed})

    def _problems_of(self, name: str, parameter: Parameter) -> Iterator[str]:
        had = [space.parameters[name] for space in self.earlier if name in space.parameters]
        latest = self.earlier[-1]
        is_new = name not in latest.parameters
        if is_new and self.present.defaults is None and old_trials_may_have(name, latest, self.present):
            yield (
                f"{name} is new, and nothing says which value old trials had in effect; give the space defaults that "
                f"hold this value of {name}"
            )
        for old in had:
            if type(old) is not type(parameter):
                kinds = f"{kind_in_words(old)} -> {kind_in_words(parameter)}"
                yield f"{name}: {kinds} is another kind of parameter; give it another name"
        if had:
            yield from _not_drawable(name, had[0], parameter)

    def _missing(self, configuration: Mapping[str, JsonScalar]) -> Mapping[str, JsonScalar]:
        """What an old trial had in effect for parameters that it was without, and that are there beside its values."""
        if not self.earlier:
            return {}
        known = dict(configuration)
        for name, parameter in self.present.parameters.items():
            if name not in known and is_there(parameter, known):
                came = self._version_that_brought(name, known)
                if came is not None and came.defaults is not None and name in came.defaults:
                    known[name] = came.defaults[name]
        return {name: value for name, value in known.items() if name not in configuration}

    def _version_that_brought(self, name: str, values: Mapping[str, JsonScalar]) -> SearchSpace | None:
        """The version after the last one in which a parameter was not there beside some values; None: it always was."""
        versions = (*self.earlier, self.present)
        absent = [place for place, space in enumerate(versions) if not _has(space, name, values)]
        return versions[absent[-1] + 1] if absent else None


def _has(space: SearchSpace, name: str, values: Mapping[str, JsonScalar]) -> bool:
    return name in space.parameters and is_there(space.parameters[name], values)


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
