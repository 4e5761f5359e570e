"""The folders that Ray's clusters leave below its temp folder: which are old, which are ours, and removing those.

A cluster makes a folder `session_*` with its logs, sockets and spilled objects, and never removes it. Nothing here
needs Ray: it reads folders and the list of processes.
"""

import logging
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from studies.identity import is_alive, process_identity

__all__ = ["OLD_S", "Session", "mark", "remove", "sessions"]

OLD_S = 24 * 3600.0
"""How long nothing must have been written in a session before it may be removed; a living one writes every minute."""
_MARK = "automl-driver"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The folder of one cluster, as it was when it was looked at.

    Attributes:
        folder: where it is.
        size_bytes: what its files occupy on the disk.
        idle_s: how long ago anything in it was written last.
        is_ours: whether it belongs to this user and was marked by `mark`.
        is_in_use: whether a process of this machine works with it.
    """

    folder: Path
    size_bytes: int
    idle_s: float
    is_ours: bool
    is_in_use: bool

    @property
    def is_old(self) -> bool:
        """Whether nobody uses it and nothing was written in it for a day."""
        return not self.is_in_use and self.idle_s > OLD_S


def mark(folder: Path) -> None:
    """Note in the folder of a cluster that this process has just started that it is ours.

    A folder that cannot be written is left without, and then never removed.
    """
    try:
        with (folder / _MARK).open("x", encoding="utf-8") as file:
            file.write(process_identity())
    except OSError as error:
        _log.warning("cannot mark Ray's folder %s as ours, remove it by hand some day: %s", folder, error)


def sessions(temp_folder: Path) -> Sequence[Session]:
    """The sessions of this user below Ray's temp folder, the oldest first; links and other people's are left out.

    Raises:
        OSError: the folder is there and cannot be read.
    """
    if not temp_folder.exists():
        return ()
    folders = sorted(folder for folder in temp_folder.glob("session_*") if _is_own_folder(folder))
    commands = _commands() if folders else ""
    return [_look(folder, commands) for folder in folders]


def remove(session: Session) -> None:
    """Remove an old session of ours, after another look at it.

    Raises:
        ValueError: it is not ours, or somebody uses it.
        OSError: it cannot be removed, or not as a whole.
    """
    if not _is_own_folder(session.folder):
        raise ValueError(f"{session.folder} is no folder of this user's")
    now = _look(session.folder, _commands())
    if not (now.is_ours and now.is_old):
        raise ValueError(f"{session.folder} is not an old session of automl's any more")
    shutil.rmtree(session.folder)


def _is_own_folder(folder: Path) -> bool:
    try:
        facts = folder.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid()


def _look(folder: Path, commands: str) -> Session:
    files = [*_files(folder)]
    driver = _driver(folder)
    return Session(
        folder=folder,
        size_bytes=sum(file.st_blocks * 512 for file in files),  # the unit of st_blocks, see stat(2)
        idle_s=time.time() - max((file.st_mtime for file in files), default=folder.lstat().st_mtime),
        is_ours=driver is not None,
        is_in_use=_names(commands, folder.name) or (driver is not None and bool(is_alive(driver))),
    )


def _names(commands: str, session: str) -> bool:
    """Whether a command line has this name, and not a longer one that begins with it."""
    return re.search(rf"{re.escape(session)}(?![\w-])", commands) is not None


def _files(folder: Path) -> Iterator[os.stat_result]:
    """What is known of each file; links are not followed, and what vanishes meanwhile is left out."""
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                yield os.lstat(os.path.join(parent, name))
            except FileNotFoundError:
                continue


def _driver(folder: Path) -> str | None:
    """Who has marked a session; None: nobody, or not this user."""
    try:
        if (folder / _MARK).lstat().st_uid != os.getuid():
            return None
        return (folder / _MARK).read_text(encoding="utf-8")
    except OSError:
        return None


def _commands() -> str:
    """The command lines of all processes: those of a cluster name their session."""
    return "\n".join(" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))
