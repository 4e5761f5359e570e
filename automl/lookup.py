"""Finds a study by its name: in the storage that is given, or in those that this person used lately."""

import logging
from dataclasses import dataclass

from automl.env import default_storage
from automl.recent import recent_storages
from studies.errors import StudyNotFoundError
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
        for url in recent_storages() if storage is None else ():
            study = _study_in(url, name)
            if study is not None:
                _log.info("study '%s' found in %s", name, url)
                return FoundStudy(study=study, storage=url)
        raise


def _study_in(url: str, name: str) -> Study | None:
    try:
        return Storage(url).open_study(name)
    except StudyNotFoundError:
        return None
