from pathlib import Path

import pytest

from studies import sharing
from studies.identity import process_identity
from studies.sharing import network_file_system, sharing_warnings
from studies.storage import Storage
from tests.contracts.study_contract import begin

MOUNTS = """\
/dev/sda1 / ext4 rw,relatime 0 0
tmpfs /tmp tmpfs rw 0 0
server:/home /home nfs4 rw,vers=4.2 0 0
/dev/sdb1 /home/local xfs rw 0 0
//server/team /mnt/team\\040data cifs rw 0 0
sshfs#bob@host: /mnt/remote fuse.sshfs rw 0 0
/dev/fuse /mnt/archive fuse.archivemount rw 0 0
server:/old /data nfs rw 0 0
/dev/sdc1 /data ext4 rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/bob/studies.db", "nfs4"),
        ("/home", "nfs4"),
        ("/homes/studies.db", None),
        ("/home/local/studies.db", None),
        ("/mnt/team data/a/studies.db", "cifs"),
        ("/mnt/remote/studies.db", "fuse.sshfs"),
        ("/mnt/archive/studies.db", None),
        ("/data/studies.db", None),
        ("/studies.db", None),
    ],
)
def test_innermost_and_latest_mount_decides(path: str, kind: str | None) -> None:
    assert network_file_system(Path(path), MOUNTS) == kind


@pytest.mark.parametrize(
    "kind", ["nfs", "smb3", "smbfs", "ceph", "lustre", "glusterfs", "9p", "beegfs", "fuse.glusterfs"]
)
def test_network_file_systems_are_known(kind: str) -> None:
    assert network_file_system(Path("/mnt/x/studies.db"), f"/dev/sda1 / ext4 rw 0 0\nx /mnt/x {kind} rw 0 0\n") == kind


@pytest.mark.parametrize("mounts", ["", "/dev/sda1 /boot ext4 rw 0 0\n", "garbage\n\n"])
def test_unknown_mounts_are_no_reason_to_warn(mounts: str) -> None:
    assert network_file_system(Path("/studies.db"), mounts) is None


def test_leases_of_other_machines_are_named_while_they_last(tmp_path: Path) -> None:
    file = tmp_path / "studies.db"
    with Storage(f"sqlite:///{file}") as storage:
        study = storage.create_study("study", direction="minimize")
        begin(study, owner=process_identity())
        begin(study, owner="gone-machine/00000000-0000-0000-0000-000000000000/1/1/1", ttl_s=0.0)
        assert sharing_warnings(study, file) == ()
        begin(study, owner="far-machine/00000000-0000-0000-0000-000000000000/1/1/1")
        (warning,) = sharing_warnings(study, file)
    assert "is in use on other machines (far-machine)" in warning
    assert "use PostgreSQL" in warning


def test_mount_of_the_file_is_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda1 / ext4 rw 0 0\nserver:/x {tmp_path} nfs4 rw 0 0\n")
    monkeypatch.setattr(sharing, "_MOUNTS", mounts)
    (tmp_path / "link.db").symlink_to(tmp_path / "studies.db")
    with Storage(f"sqlite:///{tmp_path}/studies.db") as storage:
        study = storage.create_study("study", direction="minimize")
        (warning,) = sharing_warnings(study, tmp_path / "link.db")
    assert "lies on a network file system (nfs4)" in warning
