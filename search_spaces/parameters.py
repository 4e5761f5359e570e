"""The parameters a search may turn: what values they take, how one is drawn, and which values lie near.

Nothing here knows a study or a network. Values are plain JSON scalars, so that each one survives a database, a
YAML file and an HTTP request; NaN, booleans in place of integers and text in place of numbers are refused.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from search_spaces.categorical_parameter import Categorical, PlainValue
from search_spaces.errors import InvalidParameterError, did_you_mean
from search_spaces.float_parameter import Float
from search_spaces.integer_parameter import Integer
from search_spaces.parameter_parts import Role

__all__ = ["Categorical", "Float", "Integer", "Parameter", "PlainValue", "Role", "parameter_from_json"]

Parameter: TypeAlias = Float | Integer | Categorical


def parameter_from_json(description: Mapping[str, Any]) -> Parameter:
    """Build the parameter that a `to_json` of the same version or an older one described.

    Raises:
        InvalidParameterError: the type or a field is unknown, or the parameter cannot be.
    """
    fields = dict(description)
    kind = fields.pop("type", None)
    types: dict[object, type[Parameter]] = {"float": Float, "integer": Integer, "categorical": Categorical}
    if kind not in types:
        known = f"{did_you_mean(str(kind), map(str, types))} types: {', '.join(map(str, types))}"
        raise InvalidParameterError(f"no parameter type {kind!r};{known}")
    try:
        return types[kind](**fields)
    except TypeError as error:
        raise InvalidParameterError(f"{kind} parameter: {error}") from error
