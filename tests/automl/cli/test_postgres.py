"""The command line and a PostgreSQL server that asks for a password."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.engine import make_url

from tests.automl.cli.conftest import Shell
from tests.helpers.commands import until
from tests.helpers.postgres import postgres_server as postgres_server

pytestmark = pytest.mark.postgres
PASSWORD = "hunter2"


@pytest.fixture(scope="module")
def guarded_server(postgres_server: str) -> Iterator[str]:
    """The address of a database whose owner `guest` must give a password; without that password."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE guest LOGIN PASSWORD '{PASSWORD}'")
        connection.execute("CREATE DATABASE guarded OWNER guest")
        rules = Path(str(connection.execute("SHOW hba_file").fetchone()[0]))  # type: ignore[index]  # one row
        rules.write_text(f"host guarded guest 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        connection.execute("SELECT pg_reload_conf()")
    address = make_url(postgres_server).set(username="guest", database="guarded")
    until(lambda: is_refused(address.render_as_string()), 10.0, "the new rules")
    yield address.render_as_string()


def is_refused(address: str) -> bool:
    try:
        psycopg.connect(address).close()
    except psycopg.OperationalError:
        return True
    return False


def with_password(address: str, password: str) -> str:
    return make_url(address).set(password=password).render_as_string(hide_password=False)


def test_wrong_password_is_refused_in_words_and_is_not_printed(shell: Shell, guarded_server: str) -> None:
    for arguments in (("search", "--space", "nas_small"), ("resume", "x"), ("status",)):
        ended = shell(*arguments, "--storage", with_password(guarded_server, "0pen-sesame"), "--debug")
        assert ended.code == 2, ended
        assert "check the user and the password" in ended.err
        assert "0pen-sesame" not in ended.err + ended.out
    assert not any(shell.folder.iterdir())


def test_password_that_fits_is_used_and_never_written_down(shell: Shell, guarded_server: str) -> None:
    storage = ("--storage", with_password(guarded_server, PASSWORD))
    ended = shell.search_toy("--trials", 2, *storage)
    assert ended.code == 0, ended
    for arguments in (("status",), ("show", "toy-digits"), ("report", "toy-digits")):
        looked = shell(*arguments, *storage)
        assert looked.code == 0, looked
        assert PASSWORD not in looked.out + looked.err
    assert PASSWORD not in ended.out + ended.err
    files = [path for path in shell.folder.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if PASSWORD.encode() in path.read_bytes()]
    remembered = Path(shell.environment["XDG_STATE_HOME"], "automl", "recent-studies.json")
    assert PASSWORD not in remembered.read_text()
    with psycopg.connect(with_password(guarded_server, PASSWORD)) as connection:
        stored = connection.execute("SELECT specification FROM automl_studies").fetchall()
    assert stored and PASSWORD not in str(stored)
