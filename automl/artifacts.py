"""Where the files of a study live: checkpoints and reports below one root that can be moved as a whole."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from automl.artifact_stores import check_store_can_be_written, checked_url
from automl.env import default_artifacts
from automl.errors import InvalidSpecError
from automl.recent import recent_studies
from trainers.artifact_files import is_url

__all__ = ["Artifacts", "absolute_root", "artifacts_root"]

_SQLITE_FILE = re.compile(r"sqlite(?:\+\w+)?:///(?P<file>[^?]+)")
_FILE_URL = re.compile(r"(?:file|local)://(?P<path>.*)", re.DOTALL)
_LONGEST_FOLDER_NAME = 60
_DIGITS_OF_A_HASH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifacts:
    """The files of one study.

    Attributes:
        root: absolute folder, or URL of a store, without a slash at its end; all paths that the database knows are
            relative to it.
        study: name of the study.
    """

    root: str
    study: str

    @property
    def folder(self) -> str:
        """The study's folder, relative to the root; at most 60 letters, and different for different names."""
        name = quote(self.study, safe=" ").replace(".", "%2E")
        if len(name) <= _LONGEST_FOLDER_NAME:
            return name
        digest = hashlib.sha256(self.study.encode()).hexdigest()[:_DIGITS_OF_A_HASH]
        return f"{name[: _LONGEST_FOLDER_NAME - 1 - len(digest)]}-{digest}"

    def checkpoint_dir(self, number: int, attempt: int) -> str:
        """Folder of one attempt, relative to the root; two attempts never write to one file."""
        return f"{self.folder}/trial-{number:05d}/attempt-{attempt}"

    def tensorboard_dir(self, number: int) -> str:
        """Folder of one trial's files for TensorBoard, relative to the root; `tensorboard --logdir` takes its parent.

        All attempts write there: a later one hides what an earlier one wrote of the same epochs.

        Raises:
            InvalidSpecError: the root is a URL.
        """
        self.check_tensorboard()
        return f"{self.folder}/tensorboard/trial-{number:05d}"

    def check_tensorboard(self) -> None:
        """Refuse a store: its files appear when they are whole, and those for TensorBoard grow with every epoch.

        Raises:
            InvalidSpecError: the root is a URL.
        """
        if is_url(self.root):
            raise InvalidSpecError(
                [f"tensorboard: its files grow in a folder, and the artifacts lie in {self.root}; leave it out, or "
                 "give --artifacts a folder"],
                "the place of the artifacts",
            )  # fmt: skip

    @property
    def report(self) -> str:
        """The study's report page: a path of this machine, or a URL."""
        return f"{self.root}/{self.folder}/report.html"

    @property
    def mark(self) -> str:
        """The file that tells which study's files the folder holds: a path of this machine, or a URL."""
        return f"{self.root}/{self.folder}/study.json"

    def check_store(self) -> None:
        """Try whether the store of a URL takes files; a folder is not looked at.

        Raises:
            InvalidSpecError: it does not.
        """
        if is_url(self.root):
            check_store_can_be_written(f"{self.root}/{self.folder}")

    def make_root(self) -> None:
        """Make the root where it is a folder.

        Raises:
            InvalidSpecError: it cannot be made.
        """
        if is_url(self.root):
            return
        try:
            Path(self.root).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidSpecError(
                [f"artifacts: cannot make the folder {self.root}: {error.strerror}"], "the specification"
            ) from error


def absolute_root(given: str) -> str:
    """A root as it can be used from everywhere: an absolute folder, or a URL without a slash at its end.

    Args:
        given: a folder, perhaps with `~`, or a URL; `file://` names a folder.

    Raises:
        ValueError: the URL is of no store that can be used here; the message says what to do.
    """
    file = _FILE_URL.fullmatch(given)
    if file is not None or not is_url(given):
        return str(Path(file["path"] if file else given).expanduser().resolve())
    return checked_url(given)


def artifacts_root(given: str | None, storage: str, study: str) -> str:
    """The root of a study's artifacts on this machine.

    It is the one that was given, or AUTOML_ARTIFACTS, or the one that this study had last on this machine, or the
    folder `artifacts` beside an SQLite file: a database file and its artifacts can be copied together, and are found.

    Args:
        given: what the person said; None: nothing.
        storage: URL of the database, without a password.
        study: name of the study.

    Raises:
        InvalidSpecError: it is a URL of no store that can be used here.
    """
    last = (known.artifacts for known in recent_studies() if (known.name, known.storage) == (study, storage))
    chosen = given or default_artifacts() or next(last, None)
    if chosen is not None:
        try:
            return absolute_root(chosen)
        except ValueError as error:
            raise InvalidSpecError([f"artifacts: {error}"], "the place of the artifacts") from error
    sqlite = _SQLITE_FILE.match(storage)
    if sqlite is not None and sqlite["file"] != ":memory:":
        return str(Path(sqlite["file"]).resolve().parent / "artifacts")
    return str(Path("automl-runs/artifacts").resolve())
