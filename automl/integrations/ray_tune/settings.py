"""What a Tune program says about the study that it joins: checked at once, completed by what the study has stored."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from automl.continuation import LIMITS, changed_fixed_fields, named_space, stored_fields
from automl.errors import InvalidSpecError, UnknownPluginError
from automl.integrations.ray_tune.domains import parameters_of
from automl.pruners.base import Pruner
from automl.registry import pruner_class, sampler_class
from automl.spec import SearchSpec
from search_spaces import catalog
from search_spaces.discovery import PluginImportError
from search_spaces.errors import InvalidParameterError, InvalidSpaceError, SpaceNameClashError, UnknownSearchSpaceError
from search_spaces.space import SearchSpace
from studies.standing import Limits
from studies.study import Study
from trainers.config import Direction
from trainers.replaced_parameters import searched_space

__all__ = ["Given", "Mode", "Settings", "Space", "direction_of", "settings_of"]

Mode: TypeAlias = Literal["min", "max"]
Space: TypeAlias = SearchSpace | Mapping[str, Any] | str

_DIRECTIONS: Mapping[object, Direction] = {"min": "minimize", "max": "maximize"}
_SPACE_ERRORS = (
    UnknownSearchSpaceError,
    SpaceNameClashError,
    InvalidSpaceError,
    InvalidParameterError,
    PluginImportError,
)
_LEAST = {"epochs": 1, "seed": 0, "max_retries": 0, "max_failures": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What was given; None: left out, and taken from the study or a default. See `TuneStudy` for the meanings."""

    space: Space | None = None
    metric: str | None = None
    mode: Mode | None = None
    epochs: int | None = None
    sampler: str | None = None
    pruner: str | None = None
    seed: int | None = None
    trials: int | None = None
    timeout: float | None = None
    target_value: float | None = None
    max_retries: int | None = None
    max_failures: int | None = None

    def fields(self) -> dict[str, Any]:
        """The fields of a specification that were given, as they are stored; a space only where it has a name."""
        names = ("metric", "epochs", "sampler", "pruner", "seed", "max_retries", "max_failures")
        fields = {name: getattr(self, name) for name in names}
        fields["direction"] = None if self.mode is None else direction_of(self.mode)
        fields["space"] = self.space if isinstance(self.space, str) else None
        return {name: value for name, value in fields.items() if value is not None}

    def limits(self) -> Mapping[str, float | None]:
        """The study's limits that were given, by their names there."""
        values = {limit: getattr(self, name) for name, limit in LIMITS.items()}
        return {limit: value for limit, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All that is needed to ask, to judge and to tell.

    Attributes:
        space: what is searched.
        metric: name of the objective in Tune's reports.
        direction: whether a larger or a smaller objective is better.
        epochs: epochs of a full training.
        sampler: name of a sampler.
        pruner: name of a pruner.
        seed: the study's seed.
        max_retries: how often a trial is started again after its process or machine was lost.
        max_failures: failed trials in a row that end the search.
        limits: the limits for the study, should it be new.
        changed_limits: which of them were given.
        specification: what is stored in the study, plain JSON.
    """

    space: SearchSpace
    metric: str
    direction: Direction
    epochs: int
    sampler: str
    pruner: str
    seed: int
    max_retries: int
    max_failures: int
    limits: Limits
    changed_limits: tuple[str, ...]
    specification: Mapping[str, object]


def direction_of(mode: object) -> object:
    """Our word for Tune's `min` and `max`; anything else stays as it is, and is refused later."""
    return _DIRECTIONS.get(mode, mode) if isinstance(mode, str) else mode


def settings_of(name: str, study: Study | None, given: Given) -> Settings:
    """Complete and check what was given.

    Args:
        name: the study's name.
        study: the study, where it exists.
        given: what was given.

    Raises:
        InvalidSpecError: with every mistake, also where the study has stored something else.
    """
    stored = {} if study is None else dict(stored_fields(study))
    if study is not None:
        stored.setdefault("direction", study.direction)  # plain Optuna may have made it
    fields = {**_defaults(), **stored, **given.fields()}
    problems = [*_problems(fields), *changed_fixed_fields(name, stored, given.fields())]
    space = _space(name, study, given.space, stored, problems)
    limits = _limits(given, problems)
    if problems or space is None or limits is None:
        raise InvalidSpecError(problems, f"the Tune program's settings for study '{name}'")
    used = {key: fields[key] for key in (*_LEAST, "metric", "direction", "sampler", "pruner")}
    specification = {**stored, **used, "space": fields.get("space", space.name)}
    return Settings(
        space=space,
        limits=limits,
        changed_limits=tuple(given.limits()),
        specification={key: value for key, value in specification.items() if key not in LIMITS},
        **used,
    )


def _defaults() -> dict[str, Any]:
    names = ("sampler", "seed", "max_retries", "max_failures")
    return {"pruner": "asha", **{name: SearchSpec.model_fields[name].default for name in names}}


def _problems(fields: Mapping[str, Any]) -> list[str]:
    problems = [
        f"{name}={fields[name]!r} is no whole number from {least}"
        for name, least in _LEAST.items()
        if name in fields and not (type(fields[name]) is int and fields[name] >= least)
    ]
    if "epochs" not in fields:
        problems.append("epochs: give the epochs of a full training, which Ray's schedulers call max_t")
    metric, direction = fields.get("metric"), fields.get("direction")
    if not isinstance(metric, str):
        problems.append(f"metric: {_asked_for('the name of one number in the reports', metric)}")
    if direction not in _DIRECTIONS.values():
        problems.append(f"mode: {_asked_for('min or max', direction)}")
    for name, find in (("sampler", sampler_class), ("pruner", pruner_class)):
        try:
            plugin = find(str(fields[name]))
        except (UnknownPluginError, PluginImportError) as error:
            problems.append(f"{name}: {error}")
        else:
            if issubclass(plugin, Pruner) and plugin.pauses:
                problems.append(
                    f"pruner: {fields[name]} puts trials to rest until it promotes them, but Tune starts paused trials "
                    f"again by itself; give another one, such as asha"
                )
    return problems


def _asked_for(what: str, value: object) -> str:
    if value is None:
        return f"give {what}"
    several = "; a study has one objective" if isinstance(value, list | tuple) else ""
    return f"{value!r} is not allowed: give {what}{several}"


def _limits(given: Given, problems: list[str]) -> Limits | None:
    try:
        return Limits(**given.limits())  # type: ignore[arg-type]  # each is checked there
    except (TypeError, ValueError) as error:
        problems.append(str(error))
        return None


def _space(
    name: str, study: Study | None, given: Space | None, stored: Mapping[str, Any], problems: list[str]
) -> SearchSpace | None:
    """The space that was given or is stored; None when there is a problem."""
    try:
        if given is None and study is not None and "space" in stored:
            return named_space(study, stored["space"])
        if given is None:
            problems.append("space: give what is searched: a SearchSpace, the name of one, or a dict of parameters")
            return None
        if isinstance(given, SearchSpace):
            return given
        if isinstance(given, str):
            return searched_space(catalog.load(given).SPACE, stored.get("set", {}))
        return SearchSpace(_identifier(name), parameters_of(given))
    except _SPACE_ERRORS as error:
        problems.append(f"space: {error}")
        return None


def _identifier(name: str) -> str:
    word = re.sub(r"\W", "_", name)
    return word if word.isidentifier() else f"space_{word}"
