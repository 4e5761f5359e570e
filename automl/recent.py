"""Remembers on this machine which studies a person worked on: in which database, and where their artifacts lie.

So a study's name alone is enough in any folder. The database itself holds no absolute path, and this file no password.
"""

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from automl.env import state_folder
from studies.whole_file import written_beside

__all__ = ["RecentStudy", "recent_studies", "remember_study"]

KEPT = 100

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentStudy:
    """A study that was searched on this machine.

    Attributes:
        name: the study.
        storage: URL of its database, without a password.
        artifacts: absolute root of its artifacts.
    """

    name: str
    storage: str
    artifacts: str


def recent_studies() -> Sequence[RecentStudy]:
    """The studies that were searched on this machine, the latest first; none when nothing can be read."""
    try:
        return [RecentStudy(**entry) for entry in json.loads(_file().read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError) as error:
        _log.warning("cannot read %s, and go on without it: %s", _file(), error)
        return []


def remember_study(study: RecentStudy) -> None:
    """Put a study in front; a home folder that cannot be written is no reason to fail."""
    others = [known for known in recent_studies() if (known.name, known.storage) != (study.name, study.storage)]
    entries = [asdict(entry) for entry in (study, *others)][:KEPT]
    try:
        # Many searches may begin at the same moment, and each needs a whole list.
        with written_beside(_file()) as beside:
            beside.write_text(json.dumps(entries, indent=1), encoding="utf-8")
    except OSError as error:
        _log.debug("cannot remember study '%s': %s", study.name, error)


def _file() -> Path:
    return state_folder() / "recent-studies.json"
