"""Data that only a person's own code reads: known by the name of their source and by what lies there."""

import hashlib
from pathlib import Path

__all__ = ["source_fingerprint"]

_WHOLE_FILE_BYTES = 2**30
"""A larger file is known by its size and its two ends: reading it whole would hold up the search."""
_END_BYTES = 2**20


def source_fingerprint(source: str) -> str:
    """Identify a source: equal for the same file or folder, wherever it lies, and for the same name of anything else.

    A file counts with its content, a folder with the names and sizes of its files.
    """
    path = Path(source).expanduser()
    digest = hashlib.sha256()
    if path.is_file():
        _add_file(digest, path)
    elif path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file():
                digest.update(f"{file.relative_to(path).as_posix()}\0{file.stat().st_size}\n".encode())
    else:
        digest.update(source.encode())
    return digest.hexdigest()


def _add_file(digest: "hashlib._Hash", path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= _WHOLE_FILE_BYTES:
            digest.update(hashlib.file_digest(file, "sha256").digest())
            return
        digest.update(str(size).encode() + file.read(_END_BYTES))
        file.seek(-_END_BYTES, 2)
        digest.update(file.read())
