"""A throw-away PostgreSQL server for one test session, and an empty schema in it for each test."""

import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = [
    "PostgresServer",
    "free_port",
    "postgres_server",
    "postgres_url",
    "running_postgres",
    "stoppable_postgres",
]

_SERVER_USER = "postgres"
_MEMORY_DISK = Path("/dev/shm")
_ROOM_BYTES = 2**30


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a running server and its database; skips where no server is installed."""
    with running_postgres() as address:
        yield address


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresServer:
    """A server that a test can stop and start.

    Attributes:
        address: URL of its database.
    """

    address: str
    _programs: Path
    _folder: Path
    _options: str

    def start(self) -> None:
        self._control("-l", f"{self._folder}/log", "-o", self._options, "start")

    def stop(self, mode: str = "fast") -> None:
        """Close all connections and end; `immediate`: as after a crash."""
        self._control("-m", mode, "stop")

    def _control(self, *arguments: str) -> None:
        _run([str(self._programs / "pg_ctl"), "-D", f"{self._folder}/data", "-w", *arguments])


@contextmanager
def running_postgres(**settings: str | int) -> Iterator[str]:
    """Run a server with these settings; its address. Skips the test where no server is installed."""
    with stoppable_postgres(**settings) as server:
        yield server.address


@contextmanager
def stoppable_postgres(**settings: str | int) -> Iterator[PostgresServer]:
    """Run a server with these settings that can be stopped. Skips the test where no server is installed."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL's initdb and pg_ctl are not installed")
    folder = Path(tempfile.mkdtemp(prefix="automl-postgres-", dir=_fast_disk()))
    if os.geteuid() == 0:
        shutil.chown(folder, _SERVER_USER)  # the server refuses to run as root
    port = free_port()
    own = {"listen_addresses": "127.0.0.1", "unix_socket_directories": folder, "fsync": "off", **settings}
    server = PostgresServer(
        address=f"postgresql://{_SERVER_USER}@127.0.0.1:{port}/postgres",
        _programs=programs,
        _folder=folder,
        _options=f"-p {port} " + " ".join(f"-c {name}={value}" for name, value in own.items()),
    )
    try:
        _run([str(programs / "initdb"), "-D", f"{folder}/data", "-U", _SERVER_USER, "-A", "trust", "--no-sync"])
        server.start()
        yield server
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            server.stop("immediate")
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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
