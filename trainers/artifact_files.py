"""Files below the root of a study's artifacts: a folder of this machine, or the URL of a store that fsspec knows.

A name shows a whole file or none, wherever it lies. Which files there are, and which may go, is decided elsewhere.
"""

import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedRandom
from pathlib import Path
from typing import Any, TypeAlias

from trainers.errors import ArtifactStoreError

__all__ = [
    "FileFacts",
    "Location",
    "check_writable",
    "existing_part",
    "facts_of",
    "is_url",
    "local_copy",
    "local_folder",
    "move_in",
    "remove_file",
    "remove_folder",
    "write_file",
]

Location: TypeAlias = str | Path
"""A path of this machine, or a URL such as `s3://bucket/runs`."""

_PUT_WHOLE = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss"})
"""Stores in which an object appears when its upload is complete, and folders need not be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """What a file that was written can be recognised by: SHA-256 of its content, hexadecimal, and its size."""

    digest: str
    size_bytes: int


def existing_part(folder: Path) -> Path:
    """The folder itself, or the nearest one above it that is there."""
    return next(part for part in (folder.absolute(), *folder.absolute().parents) if part.exists())


def check_writable(folder: Path) -> None:
    """Refuse a folder of this machine in which nothing can be written; it need not be there yet.

    Raises:
        ValueError: what is there is a file, or the right is missing.
    """
    nearest = existing_part(folder)
    if not nearest.is_dir():
        raise ValueError(f"{nearest} is a file; give a folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ValueError(f"no right to write below {nearest}; give another folder")


def is_url(location: Location) -> bool:
    """Whether a location is a URL rather than a path of this machine."""
    return "://" in str(location)


def write_file(location: Location, write: Callable[[BufferedRandom], object]) -> FileFacts:
    """Write a file so that its name never shows an unfinished one, not even after a power cut; folders are made.

    Args:
        location: where the file shall be; what is there is replaced.
        write: writes the content into a file that is open for reading and writing.

    Raises:
        OSError: the file cannot be written; nothing is left behind.
        ArtifactStoreError: the store does not take it.
    """
    return _upload(str(location), write) if is_url(location) else _write_beside(Path(location), write)


@contextmanager
def local_copy(location: Location) -> Iterator[Path]:
    """Hold a file as one of this machine; what lies in a store is downloaded and removed afterwards.

    Raises:
        FileNotFoundError: a store has no such file. A path of this machine is not looked at.
        ArtifactStoreError: the store does not give it.
    """
    if not is_url(location):
        yield Path(location)
        return
    with tempfile.TemporaryDirectory(prefix="automl-") as folder:
        copy = Path(folder, "file")
        with _named_store_errors("read", str(location), passing=FileNotFoundError):
            store, path = _in_store(str(location))
            store.get_file(path, str(copy))
        yield copy


@contextmanager
def local_folder(location: Location, names: Iterable[str]) -> Iterator[Path]:
    """Hold some files of a folder as those of a folder of this machine; what a store does not have is left out.

    Raises:
        ArtifactStoreError: the store does not give them.
    """
    if not is_url(location):
        yield Path(location)
        return
    with tempfile.TemporaryDirectory(prefix="automl-") as folder:
        store, path = _in_store(str(location))
        for name in names:
            with suppress(FileNotFoundError), _named_store_errors("read", str(location), passing=FileNotFoundError):
                store.get_file(f"{path}/{name}", str(Path(folder, name)))
        yield Path(folder)


def move_in(folder: Path, names: Iterable[str], location: Location) -> None:
    """Put a folder of this machine with synced files where it shall be: all of it by its name, or some into a store.

    Args:
        folder: lies beside its place, unless that is a URL.
        names: which of its files go into a store.
        location: nothing may be there, except other files in a store.

    Raises:
        OSError: it cannot be moved.
        ArtifactStoreError: the store does not take the files.
    """
    if not is_url(location):
        _sync_folder(folder)
        folder.rename(location)
        _sync_folder(folder.parent)
        return
    for name in names:
        with _named_store_errors("write", f"{location}/{name}"):
            _put(str(folder / name), f"{location}/{name}")


def remove_file(location: Location) -> None:
    """Remove a file; one that is gone already is no error.

    Raises:
        OSError: it cannot be removed.
        ArtifactStoreError: the store does not remove it.
    """
    if not is_url(location):
        Path(location).unlink(missing_ok=True)
        return
    with suppress(FileNotFoundError), _named_store_errors("remove", str(location), passing=FileNotFoundError):
        store, path = _in_store(str(location))
        store.rm_file(path)


def remove_folder(location: Location) -> None:
    """Remove a folder with all that is in it; one that is gone already is no error.

    Raises:
        OSError: it cannot be removed.
        ArtifactStoreError: the store does not remove it.
    """
    if not is_url(location):
        with suppress(FileNotFoundError):
            shutil.rmtree(location)
        return
    with suppress(FileNotFoundError), _named_store_errors("remove", str(location), passing=FileNotFoundError):
        store, path = _in_store(str(location))
        store.rm(path, recursive=True)


def facts_of(path: Path) -> FileFacts:
    """Read a file of this machine for its size and its digest."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return FileFacts(digest=digest, size_bytes=file.seek(0, os.SEEK_END))


def _write_beside(path: Path, write: Callable[[BufferedRandom], object]) -> FileFacts:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        facts = _write_through(unfinished, write)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    _sync_folder(path.parent)
    return facts


def _write_through(path: Path, write: Callable[[BufferedRandom], object]) -> FileFacts:
    """Write a file down to the disk, and read it once for its digest; `write` may read what it wrote."""
    with path.open("wb+") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    return facts_of(path)


def _upload(url: str, write: Callable[[BufferedRandom], object]) -> FileFacts:
    with tempfile.TemporaryDirectory(prefix="automl-") as folder:
        file = Path(folder, "file")
        facts = _write_through(file, write)
        with _named_store_errors("write", url):
            _put(str(file), url)
    return facts


def _put(file: str, url: str) -> None:
    store, path = _in_store(url)
    if url.partition("://")[0] in _PUT_WHOLE:
        store.put_file(file, path)
        return
    folder, _, name = path.rpartition("/")
    unfinished = f"{folder}/.{name}.{secrets.token_hex(4)}.unfinished"
    store.makedirs(folder, exist_ok=True)
    try:
        store.put_file(file, unfinished)
        store.mv(unfinished, path)
    finally:
        if store.exists(unfinished):
            store.rm_file(unfinished)


def _in_store(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path that the URL has in it."""
    from fsspec.core import url_to_fs  # not loaded for folders

    store, path = url_to_fs(url)
    return store, path


@contextmanager
def _named_store_errors(doing: str, url: str, passing: type[Exception] | tuple[()] = ()) -> Iterator[None]:
    try:
        yield
    except passing:
        raise
    except Exception as error:  # each store's library has errors of its own
        raise ArtifactStoreError(f"cannot {doing} {url}: {type(error).__name__}: {error}") from error


def _sync_folder(folder: Path) -> None:
    """Make a rename durable, where folders can be opened (POSIX)."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
