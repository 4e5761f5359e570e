import logging
import shutil
import sqlite3
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from sqlalchemy import event, text

from studies import engines
from studies.errors import StorageError, StorageFullError, StudyNotFoundError
from studies.storage import Storage
from studies.transactions import Transactions
from studies.trial import TrialState
from tests.contracts.study_contract import ELSEWHERE, SPACE, begin, complete

SECRETS = ("ss%word", "ss%25word", "hunter2")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "new folder" / "studies.db"


def test_looking_creates_nothing(file: Path) -> None:
    with Storage(f"sqlite:///{file}") as storage:
        assert storage.studies() == ()
        with pytest.raises(StudyNotFoundError):
            storage.open_study("study")
        with pytest.raises(StudyNotFoundError):
            storage.delete_study("study")
    assert not file.parent.exists()


def test_relative_path_is_made_absolute_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Storage("sqlite:///here.db") as storage, Storage("here.db") as same:
        monkeypatch.chdir("/")
        storage.create_study("study", direction="minimize")
        assert storage.url == f"sqlite:///{tmp_path}/here.db"
        assert [summary.name for summary in same.studies()] == ["study"]
        assert same.engine is storage.engine


def test_readers_and_writers_of_a_sqlite_file_do_not_wait_for_each_other(file: Path) -> None:
    with Storage(f"sqlite:///{file}") as storage:
        study = storage.create_study("study", direction="minimize")
        complete(study, 0.5)
        with sqlite3.connect(file) as other:
            assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            other.execute("BEGIN IMMEDIATE")
            assert len(storage.open_study("study").trials()) == 1
        other.close()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://bob:p@ss%word@127.0.0.1:5432/x", "write @ as %40, % as %25"),
        ("postgresql://bob:hunter2/@127.0.0.1:5432/x", "write / as %2F"),
        ("postgresql://bob:p%40ss%25word@127.0.0.1:1/x", "Connection refused.*check host and port"),
        ("postgresql://bob@127.0.0.1:1/x?password=hunter2", "Connection refused.*check host and port"),
        ("postgresql://bob:hunter2@no-such-host.invalid/x", "check the name of the host"),
        ("postgresql://bob:hunter2@127.0.0.1", "names its database"),
        ("postgresql://bob:hunter2@127.0.0.1:port/x", "cannot be read"),
        ("postgresql+psycopg2://bob:hunter2@127.0.0.1/x", "'psycopg2' is not supported.*psycopg; write postgresql://"),
        ("mysql+mysqldb://bob:hunter2@127.0.0.1/x", "'mysqldb' is not supported.*pymysql; write mysql://"),
        ("mysql://bob:p%40ss%25word@127.0.0.1:1/x", "Connection refused.*check host and port"),
        ("mariadb://bob:hunter2@no-such-host.invalid/x", "check the name of the host"),
        ("mysql://bob:hunter2@127.0.0.1:1/x?no_such_option=1", "no_such_option.*check the options"),
        ("oracle://bob:hunter2@127.0.0.1/x", "not a supported kind.*postgresql://.*mysql://"),
        ("bob:hunter2@127.0.0.1", "not a database address.*sqlite:///"),
        ("sqlite://", "gone with its process"),
        ("sqlite:///:memory:", "gone with its process"),
        ("sqlite://studies.db", "three slashes"),
        ("sqlite:////tmp", "is a folder"),
        ("sqlite:///a.db?mode=ro", "takes no options"),
        ("", "not a database address"),
    ],
)
def test_wrong_address_is_refused_in_one_line_without_its_secret(url: str, message: str) -> None:
    with pytest.raises(StorageError, match=message) as error:
        Storage(url)
    told = "".join(traceback.format_exception(error.value))
    assert "\n" not in str(error.value)
    assert not any(secret in told for secret in SECRETS)


def test_address_for_people_hides_every_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Transactions, "first_contact", lambda self: None)
    with Storage("postgresql://bob:hunter2@host/x?sslpassword=hunter2&sslmode=require") as storage:
        assert storage.url == "postgresql+psycopg://bob:***@host/x?sslmode=require"


@pytest.mark.parametrize(
    ("scheme", "driver", "extra"), [("postgresql", "psycopg", "postgres"), ("mysql", "pymysql", "mysql")]
)
def test_missing_driver_is_named_with_its_command(
    monkeypatch: pytest.MonkeyPatch, scheme: str, driver: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, driver, None)
    with pytest.raises(StorageError, match=rf"{driver}.*pip install 'automl\[{extra}\]'"):
        Storage(f"{scheme}://bob@127.0.0.1:5/x")


def test_file_of_another_program_is_refused_and_stays_as_it_is(file: Path) -> None:
    file.parent.mkdir()
    with sqlite3.connect(file) as other:
        other.executescript(
            "CREATE TABLE alembic_version (version_num VARCHAR(32)); CREATE TABLE runs (id INTEGER);"
            "INSERT INTO alembic_version VALUES ('0a1b2c3d4e5f')"
        )
    other.close()
    before = file.read_bytes()
    tries: tuple[Callable[[Storage], object], ...] = (
        lambda storage: storage.studies(),
        lambda storage: storage.open_study("study"),
        lambda storage: storage.create_study("study", direction="minimize"),
    )
    for attempt in tries:
        with Storage(f"sqlite:///{file}") as storage, pytest.raises(StorageError) as error:
            attempt(storage)
        assert "alembic_version, runs" in str(error.value)
        assert "use another database or schema" in str(error.value)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_file_that_is_no_database_is_refused(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("lr,accuracy\n" * 1000)
    with Storage(f"sqlite:///{file}") as storage, pytest.raises(StorageError, match="not a SQLite database"):
        storage.studies()


@pytest.mark.parametrize(
    ("table", "message"),
    [("alembic_version", "update automl, or use another"), ("automl_alembic_version", "update automl")],
)
def test_tables_of_another_time_are_refused_with_what_to_do(file: Path, table: str, message: str) -> None:
    with Storage(f"sqlite:///{file}") as storage:
        storage.create_study("study", direction="minimize")
    with sqlite3.connect(file) as other:
        other.execute(f"UPDATE {table} SET version_num = 'v9.9.9.z'")
    other.close()
    with Storage(f"sqlite:///{file}") as storage, pytest.raises(StorageError, match=f"v9.9.9.z.*{message}"):
        storage.open_study("study")


def test_study_with_several_objectives_is_listed_and_not_opened(file: Path) -> None:
    file.parent.mkdir()
    made = optuna.create_study(
        study_name="two", directions=["minimize", "maximize"], storage=_unpooled(f"sqlite:///{file}")
    )
    made.add_trial(optuna.trial.create_trial(values=[1.0, 2.0]))
    with Storage(f"sqlite:///{file}") as storage:
        (summary,) = storage.studies()
        assert (summary.direction, summary.best_value) == ("minimize, maximize", None)
        with pytest.raises(StorageError, match="2 objectives"):
            storage.open_study("two")


def test_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        Storage(f"sqlite:///{tmp_path}/file/folder/studies.db") as storage,
        pytest.raises(StorageError, match=f"cannot make the folder {tmp_path}/file/folder"),
    ):
        storage.create_study("study", direction="minimize")


def test_full_disk_is_said_so_and_nothing_is_half_written(file: Path) -> None:
    with Storage(f"sqlite:///{file}") as storage:
        study = storage.create_study("study", direction="minimize")
        complete(study, 0.5)
        storage.engine.dispose()

        def limit(connection: Any, record: object) -> None:
            connection.execute("PRAGMA max_page_count=1")  # SQLite takes the present size instead

        event.listen(storage.engine, "connect", limit)
        with pytest.raises(StorageFullError, match=r"the disk is full.*free some space"):
            for number in range(1, 1000):
                lease = study.create_trial(number, {"depth": 1}, SPACE, owner=ELSEWHERE)
                study.set_attribute(f"note {number}", "x" * 1000)
                study.tell(lease, TrialState.COMPLETE, value=0.5)
        event.remove(storage.engine, "connect", limit)
        storage.engine.dispose()
        trials = study.trials()
        assert [trial.number for trial in trials] == list(range(len(trials)))
        assert all(trial.configuration for trial in trials)


def test_busy_database_is_waited_for_and_said_once(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(engines, "_BUSY_TIMEOUT_S", 0.01)
    with Storage(f"sqlite:///{file}") as storage:
        study = storage.create_study("study", direction="minimize")
        foreign = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        foreign.execute("BEGIN EXCLUSIVE")
        tried = threading.Event()
        caplog.handler.addFilter(lambda record: _seen(tried))
        release = threading.Thread(target=_when, args=(tried, foreign.rollback))
        release.start()
        with caplog.at_level(logging.WARNING):
            assert begin(study).number == 0
        release.join()
        foreign.close()
    assert [record.message for record in caplog.records] == [
        "database is busy, trying again: database is locked",
    ]


def test_database_that_stays_busy_is_given_up(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_BUSY_TIMEOUT_S", 0.01)
    with Storage(f"sqlite:///{file}", patience_s=0.1) as storage:
        study = storage.create_study("study", direction="minimize")
        foreign = sqlite3.connect(file, isolation_level=None)
        foreign.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageError, match="stayed busy"):
            begin(study)
        foreign.close()
        assert begin(study).number == 0


def test_study_in_a_copied_folder_goes_on(file: Path, tmp_path: Path) -> None:
    with Storage(f"sqlite:///{file}") as storage:
        begin(storage.create_study("study", direction="minimize"), ttl_s=0.0)
    shutil.move(file.parent, tmp_path / "elsewhere")
    with Storage(f"sqlite:///{tmp_path}/elsewhere/studies.db") as storage:
        study = storage.open_study("study")
        (trial,) = study.claimable()
        assert study.claim(trial.id, owner=ELSEWHERE).attempt == 2


def test_package_import_loads_no_database_library() -> None:
    code = "import sys, studies; print(sorted({'sqlalchemy', 'optuna', 'alembic', 'torch', 'ray'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.postgres
class TestServer:
    def test_worker_waits_for_a_lock_and_goes_on(self, postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
        with Storage(postgres_url + "%20-clock_timeout%3D50ms") as storage, Storage(postgres_url) as other:
            study = storage.create_study("study", direction="minimize")
            tried = threading.Event()
            with other.engine.connect().execution_options(isolation_level="READ COMMITTED") as holder:
                holder.execute(text("SELECT study_id FROM studies FOR UPDATE"))
                caplog.handler.addFilter(lambda record: _seen(tried))
                release = threading.Thread(target=_when, args=(tried, holder.rollback))
                release.start()
                with caplog.at_level(logging.WARNING, "studies"):
                    assert begin(study).number == 0
                release.join()
        assert len(caplog.records) == 1
        assert "lock timeout" in caplog.text

    def test_connections_that_the_server_cut_are_replaced(self, postgres_url: str) -> None:
        with Storage(postgres_url) as storage, Storage(f"{postgres_url}%20-cwork_mem%3D1MB") as other:
            study = storage.create_study("study", direction="minimize")
            lease = begin(study)
            with other.engine.connect() as killer:
                cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                killer.execute(text(f"{cut} AND application_name = 'automl'"))
            study.report(lease, 1, 0.5)
            assert study.trials()[0].reports == {1: 0.5}

    def test_fifty_storages_of_one_address_share_two_connections(self, postgres_url: str) -> None:
        storages = [Storage(postgres_url) for _ in range(50)]
        for number, storage in enumerate(storages):
            storage.create_study(f"study {number}", direction="minimize").trials()
        with storages[0].engine.connect() as connection:
            query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'automl'"
            assert connection.execute(text(query)).scalar_one() <= 2
        for storage in storages:
            storage.close()

    def test_missing_database_is_named_with_its_command(self, postgres_server: str) -> None:
        with pytest.raises(StorageError, match=r'"nowhere" does not exist.*createdb'):
            Storage(f"{postgres_server.rpartition('/')[0]}/nowhere")

    def test_missing_user_is_named(self, postgres_server: str) -> None:
        with pytest.raises(StorageError, match=r'role "nobody" does not exist.*check the user'):
            Storage(postgres_server.replace("postgres@", "nobody@"))


def _seen(happened: threading.Event) -> bool:
    """Let a log record pass, and note that there is one."""
    happened.set()
    return True


def _when(happened: threading.Event, act: Callable[[], object]) -> None:
    assert happened.wait(10.0)
    act()


def _unpooled(url: str) -> optuna.storages.RDBStorage:
    from sqlalchemy import NullPool

    return optuna.storages.RDBStorage(url, engine_kwargs={"poolclass": NullPool})
