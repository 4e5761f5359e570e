"""The Python API: search, resume, open a study."""

from automl.continuation import FIXED, moved_data, stored_fields
from automl.errors import InvalidSpecError
from automl.lookup import find_study
from automl.observer import Observer
from automl.session import SearchOutcome, run
from automl.spec import SearchSpec
from studies.study import Study

__all__ = ["load_study", "resume", "search"]


def search(*, observer: Observer | None = None, **fields: object) -> SearchOutcome:
    """Search for the best configuration; go on with the study where it exists.

    Args:
        observer: is told what happens.
        fields: the fields of a `SearchSpec`; `space` is the only one that must be given.

    Raises:
        InvalidSpecError: with every mistake in `fields`.
        AutomlError: the search cannot be run, or failed.

    Example:
        >>> import automl
        >>> outcome = automl.search(space="nas_small", trials=20)
        >>> outcome.best.value
    """
    spec = SearchSpec.from_mapping(fields, "the specification")
    return run(spec, fields, observer or Observer())


def resume(study: str, *, observer: Observer | None = None, **changes: object) -> SearchOutcome:
    """Go on with a study by its name, on this or another machine.

    Args:
        study: name of the study.
        observer: is told what happens.
        changes: fields of the specification to change, such as a larger `trials`.

    Raises:
        StudyNotFoundError: there is no such study in the storage, nor in a lately used one.
        InvalidSpecError: a change is not possible.
    """
    given = changes.get("storage")
    found = find_study(study, None if given is None else str(given))
    stored = stored_fields(found.study)
    if "space" not in stored:
        raise InvalidSpecError(
            [f"study '{study}' was not made by automl; go on with it by `automl search --space ... --study {study}`"],
            "the study",
        )
    if "data" in changes:
        changes["data"] = moved_data(stored, changes["data"])
    shared = {name: stored[name] for name in (*FIXED, "data", "sampler", "pruner") if name in stored}
    if "space" in changes and stored.get("trainer") == stored["space"]:
        del shared["trainer"]  # the file of the space is also the training, and has moved with it
    explicit = {**changes, "study": study, "storage": found.storage}
    spec = SearchSpec.from_mapping({**shared, **explicit}, f"study '{study}' with the changes")
    return run(spec, explicit, observer or Observer())


def load_study(name: str, storage: str | None = None) -> Study:
    """Open a study to look at it.

    Raises:
        StudyNotFoundError: there is none of that name.
    """
    return find_study(name, storage).study
