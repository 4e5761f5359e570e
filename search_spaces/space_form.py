"""The forms of a space and its configurations for others: numbers for samplers, JSON for a study."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.errors import InvalidConfigurationError, InvalidParameterError, InvalidSpaceError
from search_spaces.parameters import parameter_from_json
from search_spaces.structure import Parameters

__all__ = ["decoded", "described", "encoded", "parts_of_description"]


def encoded(parameters: Parameters, valid: Configuration) -> tuple[float, ...]:
    """Return a number for each parameter; NaN: it is not there."""
    return tuple(
        parameter.encoded(valid[name]) if name in valid else math.nan for name, parameter in parameters.items()
    )


def decoded(space: str, parameters: Parameters, numbers: Sequence[float]) -> dict[str, JsonScalar]:
    """Return the values that numbers stand for; nobody has checked yet whether the space allows them.

    Raises:
        InvalidConfigurationError: a number is the place of no choice.
        ValueError: there are more or fewer numbers than parameters.
    """
    values: dict[str, JsonScalar] = {}
    problems = []
    for (name, parameter), number in zip(parameters.items(), numbers, strict=True):
        if math.isnan(number):
            continue
        try:
            values[name] = parameter.decoded(number)
        except ValueError as error:
            problems.append(f"{name}: {error}")
    if problems:
        raise InvalidConfigurationError(space, problems)
    return values


def described(
    *, name: str, task: str, description: str, parameters: Parameters, defaults: Configuration | None
) -> dict[str, Any]:
    """Return the JSON-safe description of a space without its rules."""
    return {
        "name": name,
        "task": task,
        "description": description,
        "parameters": {key: parameter.to_json() for key, parameter in parameters.items()},
        "defaults": None if defaults is None else defaults.as_dict(),
    }


def parts_of_description(description: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a space that was described.

    Raises:
        InvalidSpaceError: the description lacks something or describes what cannot be.
    """
    try:
        return {
            "name": description["name"],
            "parameters": {name: parameter_from_json(item) for name, item in description["parameters"].items()},
            "task": description["task"],
            "defaults": description["defaults"],
            "description": description["description"],
        }
    except KeyError as error:
        raise InvalidSpaceError(f"the description of a search space lacks {error}") from error
    except InvalidParameterError as error:
        raise InvalidSpaceError(f"search space {description['name']!r}: {error}") from error
