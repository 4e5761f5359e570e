"""Remembers which database files this person used, so that a study's name alone is enough in any folder.

Only paths of SQLite files are kept, one per line, newest first; a URL of a server may hold a password and is not.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

from automl.env import state_folder

__all__ = ["recent_storages", "remember_storage"]

KEPT = 20

_log = logging.getLogger(__name__)


def recent_storages() -> Sequence[str]:
    """The URLs of the database files that were used lately and still exist, newest first."""
    try:
        lines = _file().read_text(encoding="utf-8").splitlines()
    except OSError:
        return []  # nothing was remembered yet, or this person has no home folder
    return [f"sqlite:///{line}" for line in lines if Path(line).is_file()]


def remember_storage(url: str) -> None:
    """Put an SQLite file in front of the list; a home folder that cannot be written is no reason to fail."""
    prefix = "sqlite:///"
    if not url.startswith(prefix) or ":memory:" in url:
        return
    path = str(Path(url.removeprefix(prefix)).resolve())
    others = [known.removeprefix(prefix) for known in recent_storages()]
    lines = [path, *(other for other in others if other != path)][:KEPT]
    file = _file()
    beside = file.with_suffix(".new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text("\n".join(lines) + "\n", encoding="utf-8")
        beside.replace(file)
    except OSError as error:
        _log.debug("cannot remember the database %s: %s", path, error)


def _file() -> Path:
    return state_folder() / "recent-storages"
