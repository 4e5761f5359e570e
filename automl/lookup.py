"""Finds a study by its name: in the storage that is given, or in those that this person used lately."""

import logging
from dataclasses import dataclass

from automl.env import default_storage
from automl.errors import AutomlError
from automl.recent import recent_studies
from studies.errors import StorageError, StudyNotFoundError
from studies.storage import Storage
from studies.study import Study

__all__ = ["FoundStudy", "find_study"]

_log = logging.getLogger(__name__)
_HIDDEN = "***"
"""Stands for a password in a remembered address."""
_PATIENCE_S = 2.0
"""How long a database that may not be meant is waited for."""


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
        used = [recent.storage for recent in recent_studies() if recent.name == name] if storage is None else []
        for url in used:
            if _HIDDEN not in url and _is_in(url, name):
                _log.info("study '%s' found in %s", name, url)
                return FoundStudy(study=Storage(url).open_study(name), storage=url)
        if used and _HIDDEN in used[0]:
            raise _PasswordNeededError(name, used[0]) from None
        raise


class _PasswordNeededError(AutomlError):
    exit_code = 2

    def __init__(self, name: str, url: str) -> None:
        super().__init__(
            f"study '{name}' was last used in {url}, whose password is not remembered; give --storage, or set "
            "AUTOML_STORAGE"
        )


def _is_in(url: str, name: str) -> bool:
    try:
        with Storage(url, patience_s=_PATIENCE_S) as storage:
            storage.open_study(name)
    except (StudyNotFoundError, StorageError) as error:
        _log.debug("study '%s' is no longer in %s: %s", name, url, error)
        return False
    return True
