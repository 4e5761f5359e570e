"""Settings of samplers and pruners by name: keyword-only arguments of their classes, typed as these are annotated."""

import inspect
from collections.abc import Mapping
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from automl.pruners.base import Pruner
from automl.registry import pruner_class, sampler_class
from automl.samplers.base import Sampler
from search_spaces.configuration import JsonScalar
from search_spaces.errors import did_you_mean
from trainers.config import Direction

__all__ = ["make_pruner", "make_sampler"]


def make_sampler(name: str, direction: Direction, options: Mapping[str, JsonScalar]) -> Sampler:
    """Build the sampler of that name.

    Args:
        name: see `registry.sampler_class`.
        direction: whether larger or smaller objectives are better.
        options: its settings; those that are left out keep their defaults.

    Raises:
        UnknownPluginError: there is no such sampler.
        ValueError: a setting is unknown, or its value is not allowed; all mistakes are named.
    """
    found = sampler_class(name)
    return found(direction, **_checked(name, found, options))


def make_pruner(name: str, direction: Direction, epochs: int, options: Mapping[str, JsonScalar]) -> Pruner:
    """Build the pruner of that name.

    Args:
        name: see `registry.pruner_class`.
        direction: whether larger or smaller objectives are better.
        epochs: the epochs of a full training.
        options: its settings; those that are left out keep their defaults.

    Raises:
        UnknownPluginError: there is no such pruner.
        ValueError: a setting is unknown, or its value is not allowed; all mistakes are named.
    """
    found = pruner_class(name)
    return found(direction, epochs, **_checked(name, found, options))


def _checked(name: str, plugin: type, options: Mapping[str, JsonScalar]) -> dict[str, Any]:
    """The options in the types of the class; text is read as the number that it spells."""
    known = {key: at for key, at in inspect.signature(plugin).parameters.items() if at.kind is at.KEYWORD_ONLY}
    types = get_type_hints(plugin.__init__) if known else {}  # type: ignore[misc]  # of a class, not of an object
    values, problems = {}, []
    for key, value in options.items():
        if key not in known:
            problems.append(f"{name} has no option '{key}';{did_you_mean(key, known)} {_listed(known)}")
            continue
        try:
            values[key] = TypeAdapter(types.get(key, Any)).validate_python(_plain(value))
        except ValidationError as error:
            reasons = dict.fromkeys(details["msg"] for details in error.errors())
            problems.append(f"{key}={value!r} is not allowed: {'; '.join(reasons)}")
    if problems:
        raise ValueError("; ".join(problems))
    return values


def _plain(value: JsonScalar) -> JsonScalar:
    return None if value in ("none", "null") else value


def _listed(known: Mapping[str, inspect.Parameter]) -> str:
    if not known:
        return "it has none"
    return f"options: {', '.join(f'{key}={parameter.default}' for key, parameter in known.items())}"
