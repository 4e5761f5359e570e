"""Values of parameters as people write them. Whether a value is allowed is the space's question."""

import json
import math

from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Categorical, Float, Parameter

__all__ = ["value_of_text"]


def value_of_text(parameter: Parameter, text: str) -> JsonScalar:
    """Read a value by the kind of its parameter; text that has no such reading stays as it is.

    `16` is a whole number, and so is `16.0`; `true`, `false` and `null` are choices that are no text, where the
    parameter has them, and `[3, 5]` is a choice that is a list.
    """
    if isinstance(parameter, Categorical):
        if text in parameter.choices:
            return text
        return next((choice for choice in parameter.choices if _means(text, choice)), _label_of_list(parameter, text))
    number = _number(text)
    if number is None or isinstance(parameter, Float):
        return text if number is None else number
    return int(number) if math.isfinite(number) and number == int(number) else number


def _label_of_list(parameter: Categorical, text: str) -> JsonScalar:
    try:
        given = json.loads(text)
    except ValueError:
        return text
    return parameter.normalise(given) if isinstance(given, list) and parameter.problem(given) is None else text


def _means(text: str, choice: JsonScalar) -> bool:
    if choice is None:
        return text.lower() in ("null", "none")
    if isinstance(choice, bool):
        return text.lower() == str(choice).lower()
    return not isinstance(choice, str) and _number(text) == choice


def _number(text: str) -> float | int | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None
