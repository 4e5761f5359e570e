"""The command line and each kind of database: the same answers, old ones upgraded, and Optuna's programs beside it."""

import json
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
from optuna.distributions import FloatDistribution
from sqlalchemy.engine import make_url

from studies.standing import Limits
from studies.storage import Storage
from tests.automl.cli.conftest import TOY, Shell
from tests.helpers.commands import until
from tests.helpers.mariadb import mariadb_server, mariadb_url
from tests.helpers.postgres import postgres_server, postgres_url
from tests.helpers.searches import ForkedSearch

__all__ = ["mariadb_server", "mariadb_url", "postgres_server", "postgres_url"]

ASSETS = Path(__file__).parents[2] / "studies" / "assets"
PASSWORD, ENCODED = "p@ss%word", "p%40ss%25word"
KINDS = [
    "sqlite",
    pytest.param("postgresql", marks=pytest.mark.postgres),
    pytest.param("mysql", marks=pytest.mark.mysql),
]
LONG_SPACE = """
from search_spaces.parameters import Float
from search_spaces.space import SearchSpace
from tests.helpers.toy import build_model

SPACE = SearchSpace("long", {"x": Float(low=0.0, high=1.0, role="architecture"),
                             "p" * 600: Float(low=0.0, high=1.0, role="architecture")},
                    task="tests.helpers.toy:ToyTrainer")
"""


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, once for each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/studies.db"
    return str(request.getfixturevalue(f"{'postgres' if request.param == 'postgresql' else 'mariadb'}_url"))


def one_line(err: str) -> str:
    """The last line of the errors, which is the message."""
    return err.splitlines()[-1]


class TestNames:
    @pytest.mark.parametrize("name", ["a/b", "é😀", " leading", "'; drop table studies;--", "..", "é" * 512, "Ab"])
    def test_odd_name_is_a_name_on_every_database(self, shell: Shell, url: str, name: str) -> None:
        storage = ("--storage", url)
        ended = shell.search_toy("--trials", 1, "--study", name, *storage)
        assert ended.code == 0, ended
        summary = json.loads(shell("status", name, "--json", *storage).out)
        assert (summary["study"], summary["trials"]["complete"]) == (name, 1)
        reports = list(tmp_files(shell.folder, "*.html"))
        assert len(reports) == 1

    @pytest.mark.parametrize(("name", "word"), [("", "at least 1"), ("n" * 513, "at most 512"), ("a\nb", "control")])
    def test_name_that_does_not_fit_is_refused_before_anything(
        self, shell: Shell, url: str, name: str, word: str
    ) -> None:
        ended = shell.search_toy("--trials", 1, "--study", name, "--storage", url)
        assert ended.code == 2, ended
        assert word in ended.err
        assert len(one_line(ended.err)) < 300
        assert shell("status", "--json", "--storage", url).out.strip() == "[]"

    def test_parameter_of_600_letters_is_refused_before_anything(self, shell: Shell, url: str) -> None:
        (shell.folder / "long_space.py").write_text(LONG_SPACE)
        ended = shell.search_toy("--trials", 1, "--storage", url, space="long_space")
        assert ended.code == 2, ended
        assert "has 600 characters" in ended.err
        assert shell("status", "--json", "--storage", url).out.strip() == "[]"

    def test_names_that_differ_by_case_are_two_studies(self, shell: Shell, url: str) -> None:
        for name in ("Study", "study"):
            assert shell.search_toy("--trials", 1, "--study", name, "--storage", url).code == 0
        assert [study["study"] for study in json.loads(shell("status", "--json", "--storage", url).out)] == [
            "Study",
            "study",
        ]


def tmp_files(folder: Path, pattern: str) -> Iterator[Path]:
    """Files below the working folder and the folder around it, where a SQLite file keeps its artifacts."""
    return folder.parent.rglob(pattern)


class TestStart:
    def test_two_processes_may_meet_no_database(self, shell: Shell, url: str) -> None:
        arguments = (
            "search", "--space", "tests.helpers.toy", *TOY, "--trials", "6", "--storage", url, "--study", "shared"
        )  # fmt: skip
        with (
            ForkedSearch(*arguments, folder=shell.folder, environment=shell.environment) as one,
            ForkedSearch(*arguments, folder=shell.folder, environment=shell.environment) as two,
        ):
            ends = [one.ended(), two.ended()]
        assert [ended.code for ended in ends] == [0, 0], "\n".join(map(str, ends))
        (study,) = json.loads(shell("status", "--json", "--storage", url).out)
        assert study["trials"]["complete"] == 6
        assert sum(study["trials"].values()) == 6

    def test_search_on_another_machines_sqlite_file_is_warned_of(self, shell: Shell, tmp_path: Path) -> None:
        url = f"sqlite:///{tmp_path}/studies.db"
        assert shell.search_toy("--trials", 1, "--storage", url).code == 0
        with Storage(url) as storage:
            study = storage.open_study("toy-digits")
            study.set_limits(Limits(trials=2))
            range_of_x = {"x": FloatDistribution(0.0, 1.0)}
            study.create_trial(1, {"x": 0.5}, range_of_x, owner="far-machine/0/1/2/3", ttl_s=5.0)
        ended = shell.search_toy("--trials", 2, "--storage", url)
        assert ended.code == 0, ended
        (warning,) = [line for line in ended.err.splitlines() if "far-machine" in line and "[W" in line]
        assert "use PostgreSQL" in warning


class TestUpgrade:
    def test_old_file_is_refused_then_upgraded_then_goes_on(self, shell: Shell) -> None:
        file = Path(shutil.copy(ASSETS / "automl-0001.db", shell.folder / "studies.db"))
        storage = ("--storage", f"sqlite:///{file}")
        refused = shell.search_toy("--study", "old", "--trials", 9, *storage)
        assert refused.code == 2, refused
        assert "form 0001" in refused.err and "automl storage upgrade --storage" in refused.err
        assert file.read_bytes() == (ASSETS / "automl-0001.db").read_bytes()

        upgraded = shell("storage", "upgrade", *storage)
        assert upgraded.code == 0, upgraded
        assert f"kept a copy: {file}.0001.bak" in upgraded.out
        again = shell("storage", "upgrade", *storage)
        assert (again.code, again.out) == (0, f"sqlite:///{file}: nothing to do\n")
        assert not list(shell.folder.glob("*.0002.bak"))

        status = json.loads(shell("status", "old", "--json", *storage).out)
        assert {state: count for state, count in status["trials"].items() if count} == {
            "queued": 1, "running": 1, "paused": 1, "complete": 3, "pruned": 1, "failed": 1, "infeasible": 1,
        }  # fmt: skip

    @pytest.mark.parametrize("name", ["empty.db", "folder/none.db"])
    def test_empty_and_missing_files_work(self, shell: Shell, name: str) -> None:
        (shell.folder / "empty.db").touch()
        ended = shell("storage", "upgrade", "--storage", f"sqlite:///{name}")
        assert ended.code == 0, ended
        assert "made all tables" in ended.out
        assert shell.search_toy("--trials", 1, "--storage", f"sqlite:///{name}").code == 0

    def test_new_database_of_each_kind_gets_its_tables(self, shell: Shell, url: str) -> None:
        assert "made all tables" in shell("storage", "upgrade", "--storage", url).out
        assert "nothing to do" in shell("storage", "upgrade", "--storage", url).out


@pytest.fixture(scope="module")
def guarded_postgres(postgres_server: str) -> str:
    """The address of a database whose user must give a password and may not create tables; without the password."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE bob LOGIN PASSWORD '{PASSWORD}'".encode())
        connection.execute("CREATE DATABASE locked")
        rules = Path(str(connection.execute("SHOW hba_file").fetchone()[0]))  # type: ignore[index]  # one row
        rules.write_text(f"host locked bob 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        connection.execute("SELECT pg_reload_conf()")
    return make_url(postgres_server).set(username="bob", database="locked").render_as_string()


@pytest.fixture(scope="module")
def guarded_mariadb(mariadb_server: str) -> str:
    """The same for MariaDB."""
    port = int(str(make_url(mariadb_server).port))
    connection = pymysql.connect(host="127.0.0.1", port=port, user="root")
    with connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE locked")
        cursor.execute("CREATE USER bob@'127.0.0.1' IDENTIFIED BY %s", [PASSWORD])
        cursor.execute("GRANT SELECT ON locked.* TO bob@'127.0.0.1'")
    return f"mysql://bob@127.0.0.1:{port}/locked"


@pytest.mark.parametrize(
    "guarded",
    [
        pytest.param("guarded_postgres", marks=pytest.mark.postgres),
        pytest.param("guarded_mariadb", marks=pytest.mark.mysql),
    ],
)
class TestRefusedConnections:
    @pytest.mark.parametrize("verb", ["search", "status", "storage"])
    @pytest.mark.parametrize(
        ("user_part", "hint"),
        [
            (f"bob:{PASSWORD}@", "write @ as %40, % as %25"),
            (f"bob:{ENCODED}@", "right"),
            (f"bob:not-{ENCODED}@", "check the user"),
        ],
        ids=["signs", "no rights", "wrong password"],
    )
    def test_refusal_says_what_to_do_and_keeps_the_password(
        self, shell: Shell, request: pytest.FixtureRequest, guarded: str, verb: str, user_part: str, hint: str
    ) -> None:
        address = str(request.getfixturevalue(guarded)).replace("bob@", user_part)
        commands = {
            "search": ("search", "--space", "tests.helpers.toy", *TOY, "--trials", "1"),
            "status": ("status",),
            "storage": ("storage", "upgrade"),
        }
        ended = shell(*commands[verb], "--storage", address, "--debug")
        if (verb, hint) == ("status", "right"):
            assert ended.code == 0, ended  # an empty database may be looked at
        else:
            assert ended.code == 2, ended
            assert hint in one_line(ended.err), ended
        self.check_no_password(shell, ended.out + ended.err)

    @pytest.mark.parametrize(
        ("place", "hint"),
        [
            ("127.0.0.1:1/locked", "check host and port"),
            ("no-such-host.invalid/locked", "check the name of the host"),
            ("127.0.0.1:99999/locked", "port"),
            ("127.0.0.1:port/locked", "cannot be read"),
            ("127.0.0.1", "names its database"),
        ],
        ids=["port", "host", "impossible port", "word for a port", "no database"],
    )
    def test_wrong_place_is_told_in_one_line(
        self, shell: Shell, request: pytest.FixtureRequest, guarded: str, place: str, hint: str
    ) -> None:
        scheme = str(request.getfixturevalue(guarded)).partition(":")[0]
        ended = shell("status", "--storage", f"{scheme}://bob:{ENCODED}@{place}", "--debug")
        assert ended.code == 2, ended
        assert hint in one_line(ended.err), ended
        self.check_no_password(shell, ended.out + ended.err)

    def check_no_password(self, shell: Shell, told: str) -> None:
        left = "".join(path.read_text(errors="replace") for path in shell.folder.parent.rglob("*") if path.is_file())
        for secret in (PASSWORD, ENCODED, "ss%word", "ss%25word"):
            assert secret not in told
            assert secret not in left


def test_missing_driver_is_told_with_the_command(shell: Shell) -> None:
    for scheme, driver, extra in (("postgresql", "psycopg", "postgres"), ("mysql", "pymysql", "mysql")):
        (shell.folder / f"{driver}.py").write_text(f"raise ModuleNotFoundError(\"No module named '{driver}'\")")
        code = f"import sys; sys.modules['{driver}'] = None; from automl.cli import main; main()"
        arguments = [sys.executable, "-c", code, "status", "--storage", f"{scheme}://bob:hunter2@127.0.0.1/x"]
        ended = subprocess.run(arguments, cwd=shell.folder, env=shell.environment, capture_output=True, text=True)
        assert ended.returncode == 2, ended
        assert f"pip install 'automl[{extra}]'" in one_line(ended.stderr)
        assert "hunter2" not in ended.stderr


class TestOptunasPrograms:
    @pytest.fixture
    def searched(self, shell: Shell, url: str) -> str:
        """The address, as Optuna takes it, of a database with a finished study."""
        ended = shell.search_toy("--trials", 3, "--storage", url)
        assert ended.code == 0, ended
        return url

    def test_its_command_line_reads_a_study(self, searched: str) -> None:
        def optuna(*arguments: str) -> Any:
            program = Path(sys.executable).with_name("optuna")
            command = [str(program), *arguments, "--storage", sqlalchemy_url(searched), "--format", "json"]
            return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

        (study,) = optuna("studies")
        assert (study["name"], study["n_trials"]) == ("toy-digits", 3)
        trials = optuna("trials", "--study-name", "toy-digits")
        assert [trial["state"] for trial in trials] == ["COMPLETE"] * 3
        best = optuna("best-trial", "--study-name", "toy-digits")
        assert best["value"] == min(trial["value"] for trial in trials)

    def test_its_dashboard_serves_a_study(self, searched: str) -> None:
        with dashboard(sqlalchemy_url(searched)) as ask:
            (summary,) = ask("/api/studies")["study_summaries"]
            assert summary["study_name"] == "toy-digits"
            study = ask(f"/api/studies/{summary['study_id']}")
        assert [trial["state"] for trial in study["trials"]] == ["Complete"] * 3
        assert study["best_trials"]


def sqlalchemy_url(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://")


@contextmanager
def dashboard(url: str) -> Iterator[Any]:
    """Run optuna-dashboard; gives a function from a path to the answer's JSON."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = Path(sys.executable).with_name("optuna-dashboard")
    command = [str(program), url, "--host", "127.0.0.1", "--port", str(port), "--server", "wsgiref"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10.0) as answer:
            return json.loads(answer.read())

    def answers() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
        except OSError:
            return False
        return True

    try:
        until(answers, 30.0, "optuna-dashboard")
        yield ask
    finally:
        process.terminate()
        process.wait(10.0)
