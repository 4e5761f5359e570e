"""JSON as the database holds it and as it is printed: strict, so that every reader can read it back."""

import json
from collections.abc import Mapping
from typing import Any

from search_spaces.strict_json import strict_json

__all__ = ["from_json", "metrics_from_json", "metrics_to_json", "to_json"]


def to_json(value: object, what: str) -> str:
    """Write a value as JSON.

    Args:
        value: plain JSON without NaN and infinities.
        what: names the value in the error.

    Raises:
        ValueError: the value is not plain JSON.
    """
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} cannot be stored: {error}; give plain JSON values") from error


def from_json(text: str) -> Any:
    """Read what `to_json` or Optuna wrote."""
    return json.loads(text)


def metrics_to_json(metrics: Mapping[str, float]) -> str:
    """Write numbers by name; NaN and infinities, which JSON lacks, become text."""
    numbers = {name: float(value) for name, value in metrics.items()}
    return strict_json(numbers)


def metrics_from_json(text: str) -> dict[str, float]:
    """Read what `metrics_to_json` wrote."""
    return {name: float(value) for name, value in json.loads(text).items()}
