"""A throw-away PostgreSQL server for one test session, and an empty schema in it for each test."""

import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["postgres_server", "postgres_url"]

_SERVER_USER = "postgres"
_MEMORY_DISK = Path("/dev/shm")
_ROOM_BYTES = 2**30


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a running server and its database; skips where no server is installed."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL's initdb and pg_ctl are not installed")
    folder = Path(tempfile.mkdtemp(prefix="automl-postgres-", dir=_fast_disk()))
    if os.geteuid() == 0:
        shutil.chown(folder, _SERVER_USER)  # the server refuses to run as root
    port = _free_port()
    try:
        _run([str(programs / "initdb"), "-D", f"{folder}/data", "-U", _SERVER_USER, "-A", "trust", "--no-sync"])
        settings = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
        _run([str(programs / "pg_ctl"), "-D", f"{folder}/data", "-w", "-l", f"{folder}/log", "-o", settings, "start"])
        yield f"postgresql://{_SERVER_USER}@127.0.0.1:{port}/postgres"
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            _run([str(programs / "pg_ctl"), "-D", f"{folder}/data", "-w", "-m", "immediate", "stop"])
        shutil.rmtree(folder)


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """The address of a new, empty schema: a database of its own would cost a hundred times as much."""
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{postgres_server}?options=-csearch_path%3D{name}"


def _fast_disk() -> Path | None:
    has_room = _MEMORY_DISK.is_dir() and shutil.disk_usage(_MEMORY_DISK).free > _ROOM_BYTES
    return _MEMORY_DISK if has_room else None


def _programs() -> Path | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if found := shutil.which("initdb"):
        folders.append(Path(found).resolve().parent)
    return next((folder for folder in reversed(folders) if (folder / "pg_ctl").exists()), None)


def _run(command: list[str]) -> None:
    if os.geteuid() == 0:
        command = ["runuser", "-u", _SERVER_USER, "--", *command]
    # The server inherits the outputs, so that a pipe would stay open as long as it runs.
    with tempfile.TemporaryFile() as output:
        code = subprocess.run(command, stdout=output, stderr=output, cwd="/", check=False).returncode
        if code != 0:
            output.seek(0)
            raise RuntimeError(f"{command} failed with code {code}: {output.read().decode(errors='replace')}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
