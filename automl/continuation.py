"""What may change when a study goes on, and what makes its trials incomparable."""

from collections.abc import Mapping

from automl.errors import InvalidSpecError
from automl.spec import SearchSpec
from studies.study import Study

__all__ = ["FIXED", "check_same_data", "continued", "moved_data", "stored_form"]

FIXED = ("space", "metric", "direction", "epochs", "seed")
"""Fields that every trial of a study shares; so are the data, which are known by their fingerprint."""
_NOT_STORED = frozenset({"storage", "artifacts", "ray_address", "study", "concurrency", "gpus_per_trial"})
"""Where things lie and how many fit differs from machine to machine, and a URL may hold a password."""
_FINGERPRINT = "data_fingerprint"
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
    if "data" in explicit:
        changed["data"] = moved_data(stored, explicit["data"])
    return SearchSpec.from_mapping({**kept, **changed}, f"study '{given.study}'")


def moved_data(stored: Mapping[str, object], given: object) -> object:
    """The data of a study that are said to lie elsewhere now: a source alone keeps the stored splits."""
    splits = stored.get("data")
    return {**splits, "source": given} if isinstance(given, str) and isinstance(splits, Mapping) else given


def check_same_data(study: Study, fingerprint: str) -> None:
    """Keep the fingerprint of a new study's data; refuse other data for a study that has one.

    Raises:
        InvalidSpecError: the items or their splits are not those that the study's trials were trained on.
    """
    known = study.attributes.get(_FINGERPRINT)
    if known is None:
        study.set_attribute(_FINGERPRINT, fingerprint)
    elif known != fingerprint:
        raise InvalidSpecError(
            [
                f"data: study '{study.name}' was made with other items or other splits (fingerprint {known[:12]}, now "
                f"{fingerprint[:12]}), so that its trials could not be compared; give --data where they lie, or "
                "--study another name"
            ],
            f"the continuation of study '{study.name}'",
        )


def _show(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{key}={item}" for key, item in value.items() if item is not None)
    return repr(value)
