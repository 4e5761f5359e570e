"""What may change when a study goes on, and what makes its trials incomparable."""

from collections.abc import Mapping

from automl.errors import InvalidSpecError
from automl.spec import SearchSpec

__all__ = ["continued", "stored_form"]

FIXED = ("space", "data", "metric", "direction", "epochs", "seed")
"""Fields that every trial of a study shares."""
_NOT_STORED = frozenset({"storage", "artifacts", "ray_address", "study"})
"""Where things lie differs from machine to machine, and a URL may hold a password."""
_OF_ONE_RUN = frozenset({"timeout"})
"""Limits of a run rather than of the study: a resumed run starts without them."""


def stored_form(spec: SearchSpec) -> Mapping[str, object]:
    """The specification as it is kept in the study: plain JSON, without places and secrets."""
    return spec.model_dump(mode="json", exclude=set(_NOT_STORED))


def continued(stored: Mapping[str, object], given: SearchSpec, explicit: Mapping[str, object]) -> SearchSpec:
    """The specification of a study that goes on: what is stored, with what was said now.

    Args:
        stored: what `stored_form` gave when the study was made or last went on; empty for a study of other programs.
        given: the specification made from `explicit` alone, already valid.
        explicit: the fields that were given now; all others keep their stored value.

    Raises:
        InvalidSpecError: a fixed field is given with another value; all of them are named.
    """
    asked = given.model_dump(mode="json")
    problems = [
        f"{name}: study '{given.study}' has {_show(stored[name])}, but {_show(asked[name])} was given; "
        "leave it out to go on with the study, or give --study another name"
        for name in FIXED
        if name in explicit and name in stored and asked[name] != stored[name]
    ]
    if problems:
        raise InvalidSpecError(problems, f"the continuation of study '{given.study}'")
    kept = {name: value for name, value in stored.items() if name not in _OF_ONE_RUN}
    changed = {name: asked[name] for name in {*explicit, *_NOT_STORED}}
    return SearchSpec.from_mapping({**kept, **changed}, f"study '{given.study}'")


def _show(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{key}={item}" for key, item in value.items() if item is not None)
    return repr(value)
