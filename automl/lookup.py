"""Finds a study by its name: in the storage that is given, or in those that this person used lately."""

import logging
from dataclasses import dataclass

from automl.env import default_storage
from automl.recent import recent_studies
from studies.errors import StorageError, StudyNotFoundError
from studies.storage import Storage
from studies.study import Study

__all__ = ["FoundStudy", "find_study"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundStudy:
    """A study and the URL of the storage it was found in."""

    study: Study
    storage: str


def find_study(name: str, storage: str | None = None) -> FoundStudy:
    """Open a study in the given storage, or, without one, in the default one and then in those used lately.

    Raises:
        StudyNotFoundError: there is none of that name.
    """
    first = storage if storage is not None else default_storage()
    try:
        return FoundStudy(study=Storage(first).open_study(name), storage=first)
    except StudyNotFoundError:
        for recent in recent_studies() if storage is None else ():
            is_candidate = recent.name == name and recent.storage.startswith("sqlite")  # a server may want a password
            study = _study_in(recent.storage, name) if is_candidate else None
            if study is not None:
                _log.info("study '%s' found in %s", name, recent.storage)
                return FoundStudy(study=study, storage=recent.storage)
        raise


def _study_in(url: str, name: str) -> Study | None:
    try:
        return Storage(url).open_study(name)
    except (StudyNotFoundError, StorageError) as error:
        _log.debug("study '%s' is no longer in %s: %s", name, url, error)
        return None
