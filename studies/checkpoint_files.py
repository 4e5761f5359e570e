"""The files that the ledger of checkpoints tells of, below a root: a folder of this machine, or the URL of a store.

They are looked at and removed here; trainers write them. A checkpoint that was cut over ranks has, besides its file, a
folder of parts: `PARTS` behind its name.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from studies.errors import CheckpointStoreError
from studies.trial import CheckpointRecord

__all__ = ["PARTS", "CheckpointFiles"]

PARTS = ".parts"


class CheckpointFiles:
    """Files by their path below a root; fsspec knows how to reach them, also those of a folder.

    Attributes:
        root: absolute folder, or URL, without a slash at its end.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._is_url = "://" in root

    def location(self, path: str) -> str:
        """Where a file lies, as a path of this machine or a URL."""
        return f"{self.root}/{path}"

    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder; in a store, whether any name begins with that folder's.

        Raises:
            CheckpointStoreError: the root cannot be looked at.
        """
        with self._named_errors("look for", path) as (files, place):
            return bool(files.exists(place))

    def fault(self, record: CheckpointRecord) -> str | None:
        """What is wrong with a checkpoint's file and parts, every byte looked at; None: they are whole.

        The ledger has the size of all files, and the digest of the only one, or the SHA-256 of the list of all digests.

        Raises:
            CheckpointStoreError: the root cannot be read; the file may well be whole.
        """
        with self._named_errors("read", record.path) as (files, place):
            try:
                size = files.info(place)["size"]
                parts = {} if size == record.size_bytes else _sizes(files, place + PARTS)
                size += sum(parts.values())
                if size != record.size_bytes:
                    return f"has {size} bytes instead of {record.size_bytes}"
                digest = _digest(files, place)
                if parts:
                    others = [f"{_digest(files, f'{place}{PARTS}/{name}')}  {name}" for name in sorted(parts)]
                    digest = hashlib.sha256("\n".join([digest, *others]).encode()).hexdigest()
            except FileNotFoundError:
                return f"is missing: {self.location(record.path)}"
        return None if digest == record.digest else "is damaged: its digest differs from the ledger's"

    def remove(self, path: str) -> None:
        """Remove a checkpoint's file and parts; what is gone already is no error.

        Raises:
            CheckpointStoreError: it cannot be removed.
        """
        with self._named_errors("remove", path) as (files, place):
            with suppress(FileNotFoundError):
                files.rm_file(place)
            with suppress(FileNotFoundError):
                files.rm(place + PARTS, recursive=True)

    def remove_empty_folders(self, path: str) -> str | None:
        """Remove the folders above a file that are empty now, up to the root, which stays.

        A store has no folders of its own, or removes them with all that is in them: there nothing is done.

        Returns:
            Why a folder stays, most often because it is not empty; None: all are gone.
        """
        if self._is_url:
            return None
        for parent in PurePosixPath(path).parents[:-1]:  # the last one is the root
            try:
                Path(self.location(str(parent))).rmdir()
            except FileNotFoundError:
                continue
            except OSError as error:
                return f"{parent}: {error.strerror}"
        return None

    @contextmanager
    def _named_errors(self, doing: str, path: str) -> Iterator[tuple[Any, str]]:
        """The file system and the path in it; what its library raises becomes an error of ours."""
        location = self.location(path)
        try:
            yield self._place_of(location)
        except Exception as error:  # each store's library has errors of its own
            raise CheckpointStoreError(f"cannot {doing} {location}: {type(error).__name__}: {error}") from error

    def _place_of(self, location: str) -> tuple[Any, str]:
        # Loading fsspec takes a tenth of a second, which most commands do not need.
        from fsspec.core import url_to_fs
        from fsspec.implementations.local import LocalFileSystem

        if not self._is_url:
            return LocalFileSystem(), location  # as it is: `url_to_fs` gives a meaning to `::`
        files, place = url_to_fs(location)
        return files, place


def _sizes(files: Any, folder: str) -> dict[str, int]:
    """The sizes of the files in a folder by name; none when there is no such folder."""
    files.invalidate_cache(folder)  # another process may have written since it was last listed
    with suppress(FileNotFoundError):
        listed = files.ls(folder, detail=True)
        return {PurePosixPath(entry["name"]).name: entry["size"] for entry in listed if entry["type"] == "file"}
    return {}


def _digest(files: Any, place: str) -> str:
    with files.open(place, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
