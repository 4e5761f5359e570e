"""Folders of Ray's clusters: which are ours and old, and that nothing else is ever removed."""

import dataclasses
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from automl.executors.ray.sessions import OLD_S, Session, mark, remove, sessions
from studies.identity import process_identity

DEAD = "/".join([*process_identity().split("/")[:3], "4194300", "1"])
"""The identity of a process that is not there: a number above all that are given, from the first tick of the boot."""


def session_folder(root: Path, name: str, *, driver: str | None = DEAD, age_s: float = 2 * OLD_S) -> Path:
    """A folder as a cluster leaves it; `driver` is who has marked it."""
    folder = root / name
    (folder / "logs").mkdir(parents=True)
    (folder / "logs" / "raylet.out").write_bytes(b"x" * 100_000)
    if driver is not None:
        (folder / "automl-driver").write_text(driver)
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (time.time() - age_s,) * 2)
    return folder


def only(root: Path) -> Session:
    (found,) = sessions(root)
    return found


def test_folder_that_is_not_there_has_no_sessions(tmp_path: Path) -> None:
    assert sessions(tmp_path / "ray") == ()


def test_old_session_of_ours_is_measured_and_removed(tmp_path: Path) -> None:
    folder = session_folder(tmp_path, "session_1")
    session = only(tmp_path)
    assert (session.folder, session.is_ours, session.is_in_use, session.is_old) == (folder, True, False, True)
    assert 100_000 <= session.size_bytes < 200_000
    assert session.idle_s == pytest.approx(2 * OLD_S, abs=60.0)
    remove(session)
    assert not folder.exists()


@pytest.mark.parametrize(
    "driver, age_s, is_ours, is_in_use, is_old",
    [
        pytest.param(None, 2 * OLD_S, False, False, True, id="of another program"),
        pytest.param(DEAD, OLD_S / 2, True, False, False, id="of today"),
        pytest.param(process_identity(), 2 * OLD_S, True, True, False, id="of a living driver"),
        pytest.param("no identity", 2 * OLD_S, True, False, True, id="of a driver on another machine"),
    ],
)
def test_sessions_are_told_apart(
    tmp_path: Path, driver: str | None, age_s: float, is_ours: bool, is_in_use: bool, is_old: bool
) -> None:
    folder = session_folder(tmp_path, "session_1", driver=driver, age_s=age_s)
    session = only(tmp_path)
    assert (session.is_ours, session.is_in_use, session.is_old) == (is_ours, is_in_use, is_old)
    if not (is_ours and is_old):
        with pytest.raises(ValueError, match="not an old session of automl's"):
            remove(session)
        assert (folder / "logs" / "raylet.out").exists()


def test_session_that_a_process_names_is_in_use(tmp_path: Path) -> None:
    folder = session_folder(tmp_path, f"session_{os.getpid()}_named")
    code = "import sys; print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, f"--session-dir={folder}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        server.stdout.readline()
        session = only(tmp_path)
        with pytest.raises(ValueError, match="any more"):
            remove(dataclasses.replace(session, is_in_use=False))
        server.kill()
    assert session.is_in_use
    assert folder.exists()


def test_one_late_line_in_a_log_keeps_a_session(tmp_path: Path) -> None:
    folder = session_folder(tmp_path, "session_1")
    (folder / "logs" / "raylet.out").touch()
    assert not only(tmp_path).is_old


def test_links_and_files_are_no_sessions(tmp_path: Path) -> None:
    outside = session_folder(tmp_path / "elsewhere", "session_9")
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "session_latest").symlink_to(outside)
    (tmp_path / "ray" / "session_note").write_text("a file")
    assert sessions(tmp_path / "ray") == []


def test_folder_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    folder = session_folder(tmp_path, "session_1")
    session = only(tmp_path)
    folder.rename(tmp_path / "kept")
    folder.symlink_to(tmp_path / "kept")
    with pytest.raises(ValueError, match="no folder of this user"):
        remove(session)
    assert (tmp_path / "kept" / "logs" / "raylet.out").exists()


def test_link_inside_of_a_session_is_removed_and_its_target_stays(tmp_path: Path) -> None:
    folder = session_folder(tmp_path, "session_1")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("kept")
    (folder / "link").symlink_to(tmp_path / "precious")
    os.utime(folder / "link", (0, 0), follow_symlinks=False)
    remove(only(tmp_path))
    assert (tmp_path / "precious" / "file").read_text() == "kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_session_of_another_user_is_left_out(tmp_path: Path) -> None:
    os.chown(session_folder(tmp_path, "session_1"), 12345, 12345)
    assert sessions(tmp_path) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_mark_of_another_user_makes_nothing_ours(tmp_path: Path) -> None:
    os.chown(session_folder(tmp_path, "session_1") / "automl-driver", 12345, 12345)
    assert not only(tmp_path).is_ours


def test_mark_names_this_process_and_is_written_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = session_folder(tmp_path, "session_1", driver=None)
    mark(folder)
    assert (only(tmp_path).is_ours, only(tmp_path).is_in_use) == (True, True)
    mark(folder)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
