"""A throw-away MariaDB server for one test session, and an empty database in it for each test."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["mariadb_server", "mariadb_url"]

_SERVER_USER = "mysql"
_START_S = 60.0


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[str]:
    """The address of a running server, without a database; skips where no server is installed."""
    pymysql = pytest.importorskip("pymysql", reason="the MySQL driver pymysql is not installed")
    server, installer = shutil.which("mariadbd") or "/usr/sbin/mariadbd", shutil.which("mariadb-install-db")
    if installer is None or not Path(server).exists():
        pytest.skip("MySQL: mariadbd and mariadb-install-db are not installed")
    folder = Path(tempfile.mkdtemp(prefix="automl-mariadb-"))
    user = _own_user(folder)
    port = _free_port()
    data = f"--datadir={folder}/data"
    with (folder / "log").open("w") as log:
        _run([installer, "--no-defaults", data, *user, "--auth-root-authentication-method=normal", "--skip-test-db"])
        process = subprocess.Popen(
            [
                server, "--no-defaults", data, *user, f"--port={port}", "--bind-address=127.0.0.1",
                f"--socket={folder}/socket", f"--pid-file={folder}/pid", "--innodb-flush-log-at-trx-commit=0",
            ],
            stdout=log,
            stderr=log,
        )  # fmt: skip
    try:
        _until_it_answers(pymysql, process, port, folder / "log")
        yield f"mysql+pymysql://root@127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait(_START_S)
        shutil.rmtree(folder)


@pytest.fixture
def mariadb_url(mariadb_server: str) -> str:
    """The address of a new, empty database, of the old default character set and a collation that ignores case."""
    import pymysql

    name = f"test_{uuid.uuid4().hex}"
    port = int(mariadb_server.rstrip("/").rpartition(":")[2])
    connection = pymysql.connect(host="127.0.0.1", port=port, user="root")
    with connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name} CHARACTER SET latin1 COLLATE latin1_swedish_ci")
    return f"{mariadb_server}{name}"


def _own_user(folder: Path) -> list[str]:
    if os.geteuid() != 0:
        return []
    shutil.chown(folder, _SERVER_USER)  # the server does not run as root
    return [f"--user={_SERVER_USER}"]


def _until_it_answers(pymysql: object, process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"mariadbd did not start: {log.read_text()[-2000:]}") from None
            time.sleep(0.05)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    if done.returncode != 0:
        raise RuntimeError(f"{command} failed with code {done.returncode}: {done.stdout}{done.stderr}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
