"""Files that appear whole or not at all: written beside their place and renamed."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["written_beside"]


@contextmanager
def written_beside(target: Path) -> Iterator[Path]:
    """Give the path to write to; at the end of the `with` block the file there takes the place of `target`.

    A reader never sees half a file, and what was there stays when the writing fails. The folder is made.

    Args:
        target: where the file is to be; one that is there is replaced.

    Raises:
        OSError: the folder cannot be made, or `target` is a folder or a device.
    """
    if target.exists() and not target.is_file():
        # Renaming would take the place of a device such as /dev/null, for every program of the machine.
        raise OSError(errno.EINVAL, "it is not an ordinary file", str(target))
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.part")
    try:
        yield beside
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)
