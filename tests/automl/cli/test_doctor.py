"""`automl doctor`: what it finds on a machine in order, on a full disk, and what it removes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.automl.cli.conftest import Shell
from tests.automl.executors.test_sessions import session_folder
from tests.helpers.commands import REPOSITORY
from tests.helpers.full_disk import SmallDisk, small_disk

__all__ = ["small_disk"]

TOPICS = ["versions", "machine", "shared memory", "GPUs", "Ray's temp folder", "Ray's sessions", "storage", "artifacts"]


def findings(shell: Shell, *arguments: str, code: int = 0, **environment: str) -> dict[str, Any]:
    """Topic -> what `--json` says about it."""
    ended = shell("doctor", "--json", *arguments, **environment)
    assert ended.code == code, ended
    document = json.loads(ended.out)
    assert document["is_well"] == (code == 0)
    return {check["topic"]: check for check in document["checks"]}


def test_machine_in_order_is_described_and_left_as_it_is(shell: Shell) -> None:
    ended = shell("doctor", RAY_TMPDIR=str(shell.folder))
    assert ended.code == 0, ended
    assert [line.partition(": ")[0] for line in ended.out.splitlines()] == TOPICS
    assert not any(shell.folder.iterdir())


def test_document_holds_versions_and_sizes(shell: Shell) -> None:
    found = findings(shell, RAY_TMPDIR=str(shell.folder), CUDA_VISIBLE_DEVICES="")
    assert list(found) == TOPICS
    assert found["versions"]["facts"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert all(found["versions"]["facts"].values())
    assert found["machine"]["facts"]["cpus"] >= 1
    assert found["GPUs"]["facts"]["cuda_visible_devices"] == ""
    assert found["Ray's temp folder"]["facts"]["folder"] == str(shell.folder / "ray")
    assert found["artifacts"]["facts"]["root"] == str(shell.folder / "automl-runs" / "artifacts")


def test_little_shared_memory_is_no_fault_and_said_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from automl import doctor

    monkeypatch.setattr(doctor, "_LITTLE_SHARED_MEMORY", 2**60)
    found = {check.topic: check for check in doctor.examine()}["shared memory"]
    assert "little for loader_workers" in found.text and "--shm-size" in found.text
    assert not found.problems


def test_full_disk_of_rays_folder_is_named_with_sizes_and_what_to_do(shell: Shell, small_disk: SmallDisk) -> None:
    for number in range(3):
        session_folder(small_disk.folder / "ray", f"session_{number}")
    facts = os.statvfs(small_disk.folder)
    to_fill = facts.f_bavail * facts.f_frsize - int(0.03 * facts.f_blocks * facts.f_frsize)
    (small_disk.folder / "filler").write_bytes(b"\0" * to_fill)

    found = findings(shell, code=1, RAY_TMPDIR=str(small_disk.folder))
    (problem,) = found["Ray's temp folder"]["problems"]
    assert problem.startswith(f"the file system of {small_disk.folder / 'ray'} is 97% full (")
    assert " of 16.0 MiB left)" in problem
    assert "automl doctor --clean" in problem
    listed = found["Ray's sessions"]["facts"]["sessions"]
    assert [Path(session["folder"]).name for session in listed] == ["session_0", "session_1", "session_2"]
    assert all(session["size_bytes"] >= 100_000 for session in listed)

    (small_disk.folder / "filler").unlink()
    assert findings(shell, RAY_TMPDIR=str(small_disk.folder))["Ray's temp folder"]["problems"] == []


def test_cleaning_removes_old_sessions_of_ours_and_nothing_else(shell: Shell) -> None:
    ray = shell.folder / "ray"
    old = [session_folder(ray, f"session_{number}") for number in range(3)]
    kept = [
        session_folder(ray, "session_of_another_program", driver=None),
        session_folder(ray, "session_of_today", age_s=3600.0),
        session_folder(ray, "old_but_no_session"),
    ]
    (ray / "session_latest").symlink_to(kept[1])
    before = shell("doctor", RAY_TMPDIR=str(shell.folder))
    assert "3 of automl's older than a day, " in before.out
    assert "1 older than a day of other programs" in before.out
    assert all(folder.exists() for folder in (*old, *kept)), "looking removes nothing"

    cleaned = findings(shell, "--clean", RAY_TMPDIR=str(shell.folder))["cleaning"]
    assert cleaned["facts"]["removed"] == [str(folder) for folder in old]
    assert cleaned["text"].startswith("removed 3 sessions, ")
    assert cleaned["facts"]["freed_bytes"] >= 300_000
    assert not any(folder.exists() for folder in old)
    assert all(folder.exists() for folder in kept)
    assert (ray / "session_latest").is_symlink()
    assert "there was nothing to remove" in shell("doctor", "--clean", RAY_TMPDIR=str(shell.folder)).out


@pytest.mark.parametrize(
    "environment, topic, words",
    [
        pytest.param(
            {"AUTOML_STORAGE": "oracle://host/db"}, "storage", "not a supported kind of database", id="unknown database"
        ),
        pytest.param(
            {"AUTOML_STORAGE": "postgresql://me:secret@127.0.0.1:1/studies"}, "storage", "127.0.0.1", id="dead server"
        ),
        pytest.param({"AUTOML_STORAGE": "sqlite:////proc/studies.db"}, "storage", "cannot write in /proc", id="proc"),
        pytest.param({"AUTOML_ARTIFACTS": "/proc/artifacts"}, "artifacts", "cannot write in /proc", id="artifacts"),
        pytest.param({"AUTOML_ARTIFACTS": "tape://1"}, "artifacts", "no store that is known", id="unknown store"),
    ],
)
def test_place_that_cannot_be_used_is_named(shell: Shell, environment: dict[str, str], topic: str, words: str) -> None:
    ended = shell("doctor", RAY_TMPDIR=str(shell.folder), **environment)
    assert ended.code == 1, ended
    assert words in ended.out.partition(f"{topic}: ")[2].partition("\n  wrong: ")[2]
    assert "secret" not in ended.out
    assert "versions: " in ended.out


def test_doctor_loads_no_ray() -> None:
    """It is asked when something is wrong, which may be Ray."""
    code = "import sys, automl.doctor as d; d.examine(); d.clean(); print(*({'ray', 'optuna'} & set(sys.modules)))"
    environment = {**os.environ, "RAY_TMPDIR": "/nowhere"}
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == []
