"""JSON for people and other programs: strict, so that every reader can read it back; the packages above share it."""

import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["strict_json"]


def strict_json(document: object, *, indent: int | None = None) -> str:
    """Write a document for people and other programs.

    NaN and infinities, which JSON lacks, become the texts `nan`, `inf` and `-inf`: unlike null they stay apart from
    each other and from what is missing, and `float` reads them back.
    """
    return json.dumps(_without_odd_numbers(document), indent=indent, allow_nan=False)


def _without_odd_numbers(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _without_odd_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_odd_numbers(item) for item in value]
    return value
