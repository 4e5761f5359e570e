"""What a person's training wants to go on from, in the form that a checkpoint can hold and that reads without code."""

from collections.abc import Mapping
from typing import Any

import torch

from trainers.errors import UserCodeError

__all__ = ["plain_state"]

_ALLOWED = "None, bool, int, float, str, bytes, tensors, and dicts, lists and tuples of these"


def plain_state(state: object) -> Any:
    """Return a copy of nested containers with plain types only; tensors stay as they are.

    Numbers of NumPy become Python's, and any mapping becomes a dict.

    Raises:
        UserCodeError: something in it is of another type; every such place is named.
    """
    problems: list[str] = []
    plain = _plain(state, "state", problems)
    if problems:
        raise UserCodeError(f"{'; '.join(problems)}; a checkpoint holds {_ALLOWED}")
    return plain


def _plain(value: Any, place: str, problems: list[str]) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, Mapping):
        if strange := [key for key in value if type(key) not in (str, int)]:
            problems.append(f"{place} has the key {strange[0]!r}, which is no text and no number")
        return {key: _plain(item, f"{place}[{key!r}]", problems) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_plain(item, f"{place}[{index}]", problems) for index, item in enumerate(value)]
        return items if isinstance(value, list) else tuple(items)
    if type(value).__module__ == "numpy":
        return _of_numpy(value, place, problems)
    if isinstance(value, bool | bytes) or value is None:
        return value
    for kind in (int, float, str):
        if isinstance(value, kind):
            return kind(value)  # a subclass would be read by its code
    problems.append(f"{place} is of type {type(value).__name__}")
    return value


def _of_numpy(value: Any, place: str, problems: list[str]) -> Any:
    if getattr(value, "ndim", None) == 0:
        return _plain(value.item(), place, problems)
    problems.append(f"{place} is an array of NumPy; give torch.from_numpy(array)")
    return value
