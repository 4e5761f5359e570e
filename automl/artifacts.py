"""Where the files of a study live: checkpoints and reports below one root that can be moved as a whole."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from automl.env import default_artifacts

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


def artifacts_root(given: str | None, storage: str) -> Path:
    """The root that was given, or AUTOML_ARTIFACTS, or the folder `artifacts` beside an SQLite file.

    A database file and its artifacts can so be copied to another machine together, and are found there.
    """
    chosen = given or default_artifacts()
    if chosen is not None:
        return Path(chosen).expanduser().resolve()
    sqlite = _SQLITE_FILE.match(storage)
    if sqlite is not None and sqlite["file"] != ":memory:":
        return Path(sqlite["file"]).resolve().parent / "artifacts"
    return Path("automl-runs/artifacts").resolve()
