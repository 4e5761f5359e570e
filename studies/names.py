"""Which names and directions a study may have: the same on every database."""

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, TypeAlias, get_args

from studies.errors import InvalidNameError

__all__ = ["Direction", "check_direction", "check_keys", "check_study_name"]

Direction: TypeAlias = Literal["maximize", "minimize"]

_LONGEST = 512
"""Optuna's columns; SQLite would take more without a word, PostgreSQL refuses it."""


def check_study_name(name: str) -> None:
    """Refuse a name that a database or a terminal cannot show.

    Raises:
        InvalidNameError: it is empty, too long or has a control character.
    """
    if fault := _fault(name):
        raise InvalidNameError(f"the name of the study {fault}; give 1 to {_LONGEST} printable characters")


def check_keys(kind: str, names: Iterable[str]) -> None:
    """Refuse names of parameters or attributes that do not fit; all of them are listed.

    Raises:
        InvalidNameError: at least one does not fit.
    """
    faults = [f"{kind} {name[:40]!r} {fault}" for name in names if (fault := _fault(name))]
    if faults:
        raise InvalidNameError(f"{'; '.join(faults)}; give names of 1 to {_LONGEST} printable characters")


def check_direction(direction: str) -> None:
    """Refuse anything but `maximize` and `minimize`.

    Raises:
        ValueError: it is something else.
    """
    if direction not in get_args(Direction):
        raise ValueError(f"direction {direction!r} is not known; give 'maximize' or 'minimize'")


@lru_cache(maxsize=4096)  # the names of a study are the same for all its trials
def _fault(name: str) -> str | None:
    if not name:
        return "is empty"
    if len(name) > _LONGEST:
        return f"has {len(name)} characters"
    control = [sign for sign in name if unicodedata.category(sign) in ("Cc", "Cs")]
    return f"holds the control character {control[0]!r}" if control else None
