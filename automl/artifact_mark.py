"""Whose files a study's folder holds: a small file in it that keeps two databases from using one folder."""

import json

from automl.artifacts import Artifacts
from automl.errors import InvalidSpecError
from studies.study import Study
from trainers.artifact_files import local_copy, write_file
from trainers.errors import ArtifactStoreError

__all__ = ["check_mark", "is_marked", "set_mark"]


def is_marked(artifacts: Artifacts) -> bool:
    """Whether the folder is known to be a study's.

    Raises:
        InvalidSpecError: the mark cannot be read.
    """
    return _owner(artifacts) is not None


def check_mark(artifacts: Artifacts, study: Study | None) -> None:
    """Find out whether the folder may be used; a study without a token may use any.

    Args:
        artifacts: say where the folder is.
        study: the one that wants to use it; None: it does not exist yet, so that no mark can be its own.

    Raises:
        InvalidSpecError: the folder is another study's, or its mark cannot be read.
    """
    if study is not None and study.token is None:
        return
    owner = _owner(artifacts)
    if owner is None or (study is not None and owner == study.token):
        return
    raise InvalidSpecError(
        [
            f"artifacts: {artifacts.root}/{artifacts.folder} holds the files of a study '{artifacts.study}' of another "
            "database; give --artifacts another folder, or --study another name, or remove that folder if its "
            "study is gone"
        ],
        "the specification",
    )


def set_mark(artifacts: Artifacts, study: Study) -> None:
    """Mark the folder as this study's, unless it is already; a study without a token leaves none.

    Raises:
        InvalidSpecError: the folder is another study's, or cannot be written.
    """
    check_mark(artifacts, study)
    if study.token is None or is_marked(artifacts):
        return
    content = json.dumps({"study": study.name, "token": study.token}).encode()
    try:
        write_file(artifacts.mark, lambda file: file.write(content))
    except (OSError, ArtifactStoreError) as error:
        raise InvalidSpecError([f"artifacts: cannot write {artifacts.mark}: {error}"], "the specification") from error


def _owner(artifacts: Artifacts) -> str | None:
    """The token of the study whose files the folder holds; None: nobody has marked it."""
    try:
        with local_copy(artifacts.mark) as file:
            content = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ArtifactStoreError) as error:
        raise InvalidSpecError([f"artifacts: cannot read {artifacts.mark}: {error}"], "the specification") from error
    try:
        return str(json.loads(content)["token"])
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidSpecError(
            [
                f"artifacts: {artifacts.mark} does not tell whose files lie beside it; remove it if they are this "
                "study's, or give --artifacts another folder"
            ],
            "the specification",
        ) from error
