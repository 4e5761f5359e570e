"""What MariaDB and MySQL do otherwise than the others: tables by themselves, short texts, local times, lock waits."""

import logging
import multiprocessing
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import optuna
import pytest
from sqlalchemy import Connection, NullPool, create_engine, event, inspect, text

from studies import engines
from studies.errors import StorageError
from studies.schema import lock
from studies.storage import Storage
from studies.transactions import Transactions
from studies.trial import CheckpointRecord, TrialState
from tests.contracts.study_contract import ELSEWHERE, begin, complete

pytestmark = pytest.mark.mysql
FORK = multiprocessing.get_context("fork")
MYSQL_8_MODES = (
    "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
    "NO_ENGINE_SUBSTITUTION"
)


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """A connection of a person's, whose statements are committed at once."""
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection


@pytest.fixture
def globally(mariadb_url: str) -> Iterator[Callable[[str, str], None]]:
    """Sets a variable of the whole server until the end of the test."""
    with connected(mariadb_url) as connection:
        before: dict[str, Any] = {}

        def set_to(name: str, value: str) -> None:
            before.setdefault(name, connection.scalar(text(f"SELECT @@GLOBAL.{name}")))
            connection.execute(text(f"SET GLOBAL {name} = :value"), {"value": value})

        yield set_to
        for name, value in before.items():
            connection.execute(text(f"SET GLOBAL {name} = :value"), {"value": value})


def make_and_count(url: str, name: str) -> int:
    with Storage(url) as storage:
        storage.create_study(name, direction="minimize")
        return len(storage.studies())


@pytest.mark.parametrize("scheme", ["mysql", "mariadb", "mysql+pymysql"])
def test_every_way_to_write_the_address_works(mariadb_url: str, scheme: str) -> None:
    with Storage(mariadb_url.replace("mysql+pymysql", scheme)) as storage:
        complete(storage.create_study("study", direction="minimize"), 0.5)


class TestTables:
    def test_six_processes_may_meet_an_empty_database(self, mariadb_url: str) -> None:
        with ProcessPoolExecutor(6, mp_context=FORK) as processes:
            counts = list(processes.map(make_and_count, [mariadb_url] * 6, map(str, range(6))))
        assert max(counts) == 6

    def test_reader_beside_the_making_sees_nothing_or_all(self, mariadb_url: str) -> None:
        made = threading.Event()

        def read() -> set[int]:
            seen = set()
            with Storage(mariadb_url) as storage:
                while not made.is_set():
                    seen.add(len(storage.studies()))
            return seen

        with ThreadPoolExecutor(1) as threads:
            seen = threads.submit(read)
            make_and_count(mariadb_url, "study")
            made.set()
            assert seen.result() <= {0, 1}

    @pytest.mark.parametrize("last", ["studies", "trials", "version_info", "automl_trials"])
    def test_making_that_was_ended_in_between_is_ended_by_the_next(self, mariadb_url: str, last: str) -> None:
        class Ended(BaseException):
            pass

        def end(connection: Any, cursor: Any, statement: str, *others: Any) -> None:
            if statement.lstrip().startswith(f"CREATE TABLE {last} "):
                raise Ended

        with Storage(mariadb_url) as storage:
            event.listen(storage.engine, "after_cursor_execute", end)
            with pytest.raises(Ended):
                storage.create_study("study", direction="minimize")
            event.remove(storage.engine, "after_cursor_execute", end)
        assert make_and_count(mariadb_url, "study") == 1

    def test_table_of_another_program_of_the_same_name_is_refused(self, mariadb_url: str) -> None:
        with connected(mariadb_url) as connection:
            connection.execute(text("CREATE TABLE trials (id INTEGER, drug TEXT)"))
        with Storage(mariadb_url) as storage, pytest.raises(StorageError, match=r"another program.*trials"):
            storage.create_study("study", direction="minimize")
        with connected(mariadb_url) as connection:
            assert inspect(connection).get_table_names() == ["trials"]

    def test_making_is_waited_for_only_so_long(self, mariadb_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lock, "_PATIENCE_S", 0)
        with connected(mariadb_url) as other, lock.schema_lock(other), Storage(mariadb_url) as storage:
            with pytest.raises(StorageError, match="another process has been changing the tables"):
                storage.create_study("study", direction="minimize")

    def test_long_path_of_a_checkpoint_and_long_texts_fit(self, mariadb_url: str) -> None:
        with Storage(mariadb_url) as storage:
            study = storage.create_study("study", direction="minimize", specification={"note": "é" * 200_000})
            lease = begin(study)
            record = CheckpointRecord(path="é" * 512, epoch=1, attempt=1, digest="0" * 64, size_bytes=2**40)
            study.report(lease, 1, 0.5, {"loss": 0.5}, record)
            assert study.checkpoints(lease) == (record,)
            assert study.specification["note"] == "é" * 200_000


class TestPlainOptuna:
    @pytest.fixture
    def made_by_optuna(self, mariadb_url: str) -> str:
        storage = optuna.storages.RDBStorage(mariadb_url, engine_kwargs={"poolclass": NullPool})
        study = optuna.create_study(study_name="theirs", storage=storage)
        study.add_trial(optuna.trial.create_trial(value=0.5))
        study.enqueue_trial({"depth": 3})
        return mariadb_url

    def test_its_database_opens_and_its_study_goes_on(self, made_by_optuna: str) -> None:
        with Storage(made_by_optuna) as storage:
            study = storage.open_study("theirs")
            assert [trial.state for trial in study.trials()] == [TrialState.COMPLETE, TrialState.QUEUED]
            complete(study, 0.25)
            assert study.as_optuna().best_value == 0.25

    def test_text_that_its_short_columns_do_not_hold_is_refused_in_words(self, made_by_optuna: str) -> None:
        with Storage(made_by_optuna) as storage:
            study = storage.open_study("theirs")
            with pytest.raises(StorageError, match="Data too long for column 'value_json'"):
                study.set_attribute("note", "x" * 100_000)
            assert study.attributes == {}


class TestServer:
    def test_times_are_utc_wherever_the_server_is(self, mariadb_url: str, globally: Callable[[str, str], None]) -> None:
        globally("time_zone", "+09:00")
        with Storage(mariadb_url) as storage:
            study = storage.create_study("study", direction="minimize")
            lease = begin(study)
            study.report(lease, 1, 0.5)
            (trial,) = study.trials()
            (summary,) = storage.studies()
        assert trial.started_at is not None and summary.last_activity is not None
        assert abs(datetime.now(UTC) - trial.started_at) < timedelta(seconds=60)
        assert abs(datetime.now(UTC) - summary.last_activity) < timedelta(seconds=60)

    def test_modes_of_mysql_8_are_no_hindrance(self, mariadb_url: str, globally: Callable[[str, str], None]) -> None:
        globally("sql_mode", MYSQL_8_MODES)
        with Storage(mariadb_url) as storage:
            study = storage.create_study("study", direction="minimize")
            complete(study, 0.5)
            study.pause(begin(study))
            study.claim(study.trials()[1].id, owner=ELSEWHERE)
            (summary,) = storage.studies()
            assert (summary.counts[TrialState.COMPLETE], summary.counts[TrialState.RUNNING]) == (1, 1)
            assert study.counts() == summary.counts

    def test_worker_waits_for_a_lock_and_goes_on(
        self, mariadb_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(engines, "_LOCK_TIMEOUT_S", 1)
        with Storage(mariadb_url) as storage, Storage(f"{mariadb_url}?charset=utf8mb4") as other:
            study = storage.create_study("study", direction="minimize")
            tried = threading.Event()
            with other.engine.connect() as holder, ThreadPoolExecutor(1) as threads:
                holder.execute(text("SELECT study_id FROM studies FOR UPDATE"))
                caplog.handler.addFilter(lambda record: noted(tried))
                begun = threads.submit(begin, study)
                assert tried.wait(20.0)
                holder.rollback()
                assert begun.result().number == 0
        assert [record for record in caplog.records if record.levelno >= logging.WARNING] == caplog.records[:1]
        assert "Lock wait timeout" in caplog.text

    def test_victim_of_a_deadlock_tries_again(self, mariadb_url: str) -> None:
        with Storage(mariadb_url) as storage:
            for name in ("a", "b"):
                storage.create_study(name, direction="minimize")
            transactions = Transactions(storage.engine, "here")
            barrier = threading.Barrier(2)
            tries: list[str] = []

            def cross(first: str, second: str) -> None:
                def work(connection: Connection) -> None:
                    tries.append(first)
                    lock_row(connection, first)
                    if len(tries) <= 2:
                        barrier.wait(10.0)
                    lock_row(connection, second)

                transactions.write(work)

            with ThreadPoolExecutor(2) as threads:
                for done in (threads.submit(cross, "a", "b"), threads.submit(cross, "b", "a")):
                    done.result()
        assert len(tries) == 3

    def test_connections_that_the_server_cut_are_replaced(self, mariadb_url: str) -> None:
        with Storage(mariadb_url) as storage:
            study = storage.create_study("study", direction="minimize")
            lease = begin(study)
            with connected(mariadb_url) as killer:
                mine = killer.scalar(text("SELECT CONNECTION_ID()"))
                for (thread,) in killer.execute(
                    text("SELECT id FROM information_schema.processlist WHERE user = 'root'")
                ):
                    if thread != mine:
                        killer.execute(text(f"KILL {int(thread)}"))
            study.report(lease, 1, 0.5)
            assert study.trials()[0].reports == {1: 0.5}

    def test_missing_database_is_named_with_its_command(self, mariadb_server: str) -> None:
        with pytest.raises(StorageError, match=r"Unknown database 'nowhere'.*CREATE DATABASE"):
            Storage(f"{mariadb_server}nowhere")


def noted(tried: threading.Event) -> bool:
    """Let a log record pass, and note that there is one."""
    tried.set()
    return True


def lock_row(connection: Connection, name: str) -> None:
    connection.execute(text("SELECT study_id FROM studies WHERE study_name = :name FOR UPDATE"), {"name": name})
