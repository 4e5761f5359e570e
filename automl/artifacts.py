"""Where the files of a study live: checkpoints and reports below one root that can be moved as a whole."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from automl.env import default_artifacts
from automl.recent import recent_studies

__all__ = ["Artifacts", "artifacts_root"]

_SQLITE_FILE = re.compile(r"sqlite(?:\+\w+)?:///(?P<file>[^?]+)")
_LONGEST_FOLDER_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifacts:
    """The files of one study.

    Attributes:
        root: absolute folder; all paths that the database knows are relative to it.
        study: name of the study.
    """

    root: Path
    study: str

    @property
    def folder(self) -> str:
        """The study's folder, relative to the root; different for different names."""
        name = quote(self.study, safe=" ").replace(".", "%2E")
        if len(name) <= _LONGEST_FOLDER_NAME:
            return name
        return f"{name[:_LONGEST_FOLDER_NAME]}-{hashlib.sha256(self.study.encode()).hexdigest()[:16]}"

    def checkpoint_dir(self, number: int, attempt: int) -> str:
        """Folder of one attempt, relative to the root; two attempts never write to one file."""
        return f"{self.folder}/trial-{number:05d}/attempt-{attempt}"

    @property
    def report(self) -> Path:
        """The study's report page."""
        return self.root / self.folder / "report.html"


def artifacts_root(given: str | None, storage: str, study: str) -> Path:
    """The root of a study's artifacts on this machine.

    It is the one that was given, or AUTOML_ARTIFACTS, or the one that this study had last on this machine, or the
    folder `artifacts` beside an SQLite file: a database file and its artifacts can be copied together, and are found.

    Args:
        given: what the person said; None: nothing.
        storage: URL of the database, without a password.
        study: name of the study.
    """
    last = (known.artifacts for known in recent_studies() if (known.name, known.storage) == (study, storage))
    chosen = given or default_artifacts() or next(last, None)
    if chosen is not None:
        return Path(chosen).expanduser().resolve()
    sqlite = _SQLITE_FILE.match(storage)
    if sqlite is not None and sqlite["file"] != ":memory:":
        return Path(sqlite["file"]).resolve().parent / "artifacts"
    return Path("automl-runs/artifacts").resolve()
