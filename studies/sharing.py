"""Whether a SQLite study is shared in a way that SQLite cannot bear: over a network, or by several machines.

Its locks and its log need one kernel that all processes have in common.
"""

import re
from pathlib import Path

from studies.identity import process_identity
from studies.study import Study
from studies.trial import TrialState

__all__ = ["network_file_system", "other_hosts", "sharing_warnings"]

_MOUNTS = Path("/proc/mounts")
_NETWORK = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "davfs", "drvfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs",
        "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb3", "smbfs", "vboxsf", "wekafs",
    }
)  # fmt: skip
_NETWORK_FUSE = frozenset(
    {
        "afs", "beegfs", "blobfuse", "blobfuse2", "ceph", "ceph-fuse", "davfs", "gcsfuse", "glusterfs", "goofys",
        "juicefs", "moosefs", "mount-s3", "mountpoint-s3", "rclone", "s3fs", "seaweedfs", "smbnetfs", "sshfs",
    }
)  # fmt: skip
_ADVICE = "SQLite is made for one machine, so that trials may be lost or done twice; use PostgreSQL (--storage postgresql://...)"


def sharing_warnings(study: Study, file: Path | None) -> tuple[str, ...]:
    """Say in a line each what speaks against this SQLite file; empty when nothing does.

    Args:
        study: one of its studies.
        file: the database; None: it is on a server, against which nothing speaks.
    """
    if file is None:
        return ()
    warnings = []
    mounts = _MOUNTS.read_text(errors="surrogateescape") if _MOUNTS.exists() else ""
    if kind := network_file_system(file.resolve(), mounts):
        warnings.append(f"{file} lies on a network file system ({kind}): {_ADVICE}")
    if hosts := other_hosts(study):
        warnings.append(f"the SQLite file {file} is in use on other machines ({', '.join(hosts)}): {_ADVICE}")
    return tuple(warnings)


def network_file_system(path: Path, mounts: str) -> str | None:
    """The type of the network file system that a file lies on; None when it lies on a disk of this machine.

    Args:
        path: absolute, without symbolic links; need not exist.
        mounts: what /proc/mounts says; see proc(5).
    """
    best: tuple[int, str] = (-1, "")
    for line in mounts.splitlines():
        match line.split(" "):
            case [_, point, kind, *_]:
                folder = Path(_unescaped(point))
                # Of mounts at one place the last one covers the others.
                if path.is_relative_to(folder) and len(folder.parts) >= best[0]:
                    best = len(folder.parts), kind
    kind = best[1]
    is_network = kind in _NETWORK or kind.removeprefix("fuse.") in _NETWORK_FUSE
    return kind if is_network else None


def other_hosts(study: Study) -> tuple[str, ...]:
    """The other machines that hold leases of the study that are not over, by name."""
    free = {trial.id for trial in study.claimable()}
    owners = [trial.owner for trial in study.trials([TrialState.RUNNING]) if trial.owner and trial.id not in free]
    return tuple(sorted({_host(owner) for owner in owners} - {_host(process_identity())}))


def _host(owner: str) -> str:
    return owner.partition("/")[0]


def _unescaped(point: str) -> str:
    """Turn the octal numbers of white space back into it."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), point)
