"""Looks at what a search needs on this machine, and says what is wrong: nothing is changed, no study is touched."""

import platform
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from automl.byte_sizes import in_words
from automl.env import default_storage, ray_temp_folder, visible_devices
from automl.errors import AutomlError
from automl.executors.ray.sessions import Session, remove, sessions
from automl.executors.ray.versions import installed_version
from automl.machine import disk_space, this_machine
from studies.errors import StudyError
from trainers.artifact_files import existing_part, is_url

__all__ = ["Check", "clean", "examine"]

FULL = 0.95
"""From this share on Ray places no more objects on a file system (its `local_fs_capacity_threshold`)."""
_SHARED_MEMORY = Path("/dev/shm")
_LITTLE_SHARED_MEMORY = 256 * 2**20
"""A container of Docker has 64 MiB unless it is told otherwise."""
_PATIENCE_S = 5.0
"""How long a database may be busy while it is looked at."""
_SHOWS_EVERYTHING_OR_NOTHING = (None, "", "-1")
_PACKAGES = ("automl", "torch", "ray", "optuna")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at.

    Attributes:
        topic: what it is, in a few words.
        text: what was found, in one line.
        problems: what is wrong and what to do, a sentence each; empty: nothing.
        facts: the same as plain JSON values; sizes in bytes, times in seconds.
    """

    topic: str
    text: str
    problems: Sequence[str] = ()
    facts: Mapping[str, object] = field(default_factory=dict)


def examine() -> Sequence[Check]:
    """Look at everything, in the order in which a person would; takes a few seconds, as torch is loaded."""
    looks: Sequence[tuple[str, Callable[[], Check]]] = (
        ("versions", _versions),
        ("machine", _machine),
        ("shared memory", _shared_memory),
        ("GPUs", _gpus),
        ("Ray's temp folder", _temp_folder),
        ("Ray's sessions", _sessions),
        ("storage", _storage),
        ("artifacts", _artifacts),
    )
    return [_without_stopping(topic, look) for topic, look in looks]


def clean() -> Check:
    """Remove the old sessions of our own private clusters, and nothing else."""
    removed: list[Session] = []
    problems = []
    for session in sessions(ray_temp_folder()):
        if not (session.is_ours and session.is_old):
            continue
        try:
            remove(session)
        except (OSError, ValueError) as error:
            problems.append(f"cannot remove {session.folder}: {error}; remove it by hand")
        else:
            removed.append(session)
    freed = sum(session.size_bytes for session in removed)
    text = f"removed {_counted(len(removed))}, {in_words(freed)}" if removed else "there was nothing to remove"
    facts = {"removed": [str(session.folder) for session in removed], "freed_bytes": freed}
    return Check(topic="cleaning", text=text, problems=problems, facts=facts)


def _without_stopping(topic: str, look: Callable[[], Check]) -> Check:
    """A look that itself goes wrong is a finding, and the others are taken all the same."""
    try:
        return look()
    except (AutomlError, StudyError, OSError, ImportError) as error:
        return Check(topic=topic, text="cannot be used", problems=[str(error)])


def _versions() -> Check:
    found = {name: installed_version(name) for name in _PACKAGES}
    missing = [name for name, number in found.items() if number is None]
    return Check(
        topic="versions",
        text=", ".join(
            [f"Python {platform.python_version()}", *(f"{name} {number}" for name, number in found.items())]
        ),
        problems=[f"{name} is not installed; run: pip install {name}" for name in missing],
        facts={"python": platform.python_version(), **found},
    )


def _machine() -> Check:
    machine = this_machine()
    usable = "" if machine.usable_cpus == machine.cpus else f" ({machine.usable_cpus} usable)"
    limit = machine.memory_limit_bytes
    limited = "" if limit is None else f", limited to {in_words(limit)} by the control group"
    return Check(
        topic="machine",
        text=f"{machine.cpus} CPUs{usable}, {in_words(machine.memory_bytes)} of memory{limited}",
        facts={
            "cpus": machine.cpus,
            "usable_cpus": machine.usable_cpus,
            "memory_bytes": machine.memory_bytes,
            "memory_limit_bytes": limit,
        },
    )


def _shared_memory() -> Check:
    """What the workers of a DataLoader hand their batches over in, and Ray keeps its objects in."""
    if not _SHARED_MEMORY.is_dir():
        return Check(topic="shared memory", text=f"this system has no {_SHARED_MEMORY}")
    space = disk_space(_SHARED_MEMORY)
    text = f"{_SHARED_MEMORY} has {in_words(space.size_bytes)}, {in_words(space.free_bytes)} free"
    if space.size_bytes < _LITTLE_SHARED_MEMORY:  # it is no fault: items are read without workers unless told otherwise
        text += "; little for loader_workers, give a container more for them (docker run --shm-size=2g)"
    return Check(
        topic="shared memory",
        text=text,
        facts={"size_bytes": space.size_bytes, "free_bytes": space.free_bytes},
    )


def _gpus() -> Check:
    from trainers.devices import gpus_of_torch, visible_gpus

    there, setting, torch = this_machine().gpus, visible_devices(), gpus_of_torch()
    named = [f"{gpu.name} with {in_words(gpu.memory_bytes)}" for gpu in torch.gpus]
    problems = list(torch.troubles)
    shown = visible_gpus(setting, there)
    if there and torch.build is None:
        problems.append(f"this machine has {there} GPUs, and torch was built for CPUs only; install torch for CUDA")
    elif len(shown) > len(torch.gpus) and not problems:
        problems.append(f"this process should see {len(shown)} GPUs, and torch sees {len(torch.gpus)}")
    elif there and setting not in _SHOWS_EVERYTHING_OR_NOTHING and len(shown) < len(setting.split(",")):
        problems.append(
            f"CUDA_VISIBLE_DEVICES={setting!r} shows {len(shown)} of this machine's {there} GPUs; their numbers are "
            f"0 to {there - 1}, and the list ends before the first that is none of them"
        )
    given = "not set" if setting is None else repr(setting)
    return Check(
        topic="GPUs",
        text=f"{', '.join(named) or 'none'}; CUDA_VISIBLE_DEVICES is {given}",
        problems=problems,
        facts={"gpus": named, "of_the_driver": there, "cuda_visible_devices": setting, "torch_build": torch.build},
    )


def _temp_folder() -> Check:
    folder = ray_temp_folder()
    space = disk_space(folder)
    problems = []
    if space.used >= FULL:
        own = sum(session.size_bytes for session in sessions(folder))
        problems.append(
            f"the file system of {folder} is {space.used:.0%} full ({in_words(space.free_bytes)} of "
            f"{in_words(space.size_bytes)} left), and from {FULL:.0%} on Ray stores no objects on it; sessions in it "
            f"have {in_words(own)}: automl doctor --clean, make room, or set RAY_TMPDIR to a folder on another disk"
        )
    return Check(
        topic="Ray's temp folder",
        text=f"{folder}; its file system is {space.used:.0%} full, {in_words(space.free_bytes)} left",
        problems=problems,
        facts={"folder": str(folder), "size_bytes": space.size_bytes, "free_bytes": space.free_bytes},
    )


def _sessions() -> Check:
    found = sessions(ray_temp_folder())
    old = [session for session in found if session.is_old]
    ours = [session for session in old if session.is_ours]
    parts = [f"{_counted(len(found))} of this user, {in_words(sum(session.size_bytes for session in found))}"]
    if ours:
        parts.append(
            f"{len(ours)} of automl's older than a day, {in_words(sum(session.size_bytes for session in ours))}: "
            "automl doctor --clean removes them"
        )
    if len(old) > len(ours):
        parts.append(f"{len(old) - len(ours)} older than a day of other programs, to be removed by hand")
    return Check(
        topic="Ray's sessions",
        text="; ".join(parts),
        facts={"sessions": [{**asdict(session), "folder": str(session.folder)} for session in found]},
    )


def _storage() -> Check:
    from studies.storage import Storage

    with Storage(default_storage(), patience_s=_PATIENCE_S) as storage:
        studies = len(storage.studies())
        url, file = storage.url, storage.file
    if file is not None:
        _try_to_write(existing_part(file.parent))
    text = f"{url}, " + ("not made yet" if file is not None and not file.exists() else f"{studies} studies")
    return Check(topic="storage", text=text, facts={"url": url, "studies": studies})


def _artifacts() -> Check:
    from automl.artifact_stores import check_store_can_be_written
    from automl.artifacts import artifacts_root
    from studies.database_url import DatabaseAddress

    root = artifacts_root(None, DatabaseAddress.parse(default_storage()).shown, study="")
    if is_url(root):
        check_store_can_be_written(root)
        return Check(topic="artifacts", text=root, facts={"root": root})
    space = disk_space(Path(root))
    _try_to_write(space.folder)
    return Check(
        topic="artifacts",
        text=f"{root}, {in_words(space.free_bytes)} left",
        facts={"root": root, "free_bytes": space.free_bytes},
    )


def _try_to_write(folder: Path) -> None:
    """Write a small file in a folder, which is gone at once; rights alone do not tell of a full disk or a quota.

    Raises:
        OSError: it cannot be written; the message names the folder.
    """
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            file.write(b"automl looks whether it can write here\n" * 100)
    except OSError as error:
        raise OSError(
            f"cannot write in {folder}: {error.strerror}; make room or give the right to, or choose another place "
            "with AUTOML_STORAGE and AUTOML_ARTIFACTS"
        ) from error


def _counted(sessions: int) -> str:
    return "1 session" if sessions == 1 else f"{sessions} sessions"
