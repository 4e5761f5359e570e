"""Databases that are locked, cut off, deadlocked, stopped: the right answer comes late, and nothing is stored twice."""

import logging
import multiprocessing
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, select

from studies import engines
from studies.errors import BudgetSpentError, StorageError
from studies.identity import process_identity
from studies.schema import optuna_tables
from studies.storage import Storage
from studies.study import Study
from studies.study_rows import write_study_attribute
from studies.transactions import Transactions
from studies.trial import TrialState
from tests.contracts.study_contract import CONFIGURATION, ELSEWHERE, SPACE, begin, claim_places_of
from tests.helpers.commands import until
from tests.helpers.lost_answers import lose_next_answer
from tests.helpers.postgres import postgres_server, postgres_url, stoppable_postgres

__all__ = ["postgres_server", "postgres_url"]

US = process_identity()


@pytest.fixture
def study(file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Study]:
    monkeypatch.setattr(engines, "_BUSY_TIMEOUT_S", 0.05)
    with Storage(f"sqlite:///{file}") as storage:
        yield storage.create_study("study", direction="minimize")


# Answers that are lost


def test_created_trial_whose_answer_was_lost_is_ours_and_the_only_one(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_next_answer(monkeypatch)
    lease = begin(study, owner=US)
    assert [(trial.number, trial.state) for trial in study.trials()] == [(0, TrialState.RUNNING)]
    study.report(lease, 1, 0.5)
    study.tell(lease, TrialState.COMPLETE, value=0.5)
    assert study.trials()[0].attempt == 1


def test_last_place_of_the_budget_whose_answer_was_lost_is_ours(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(study, budget=2)
    lose_next_answer(monkeypatch)
    assert begin(study, owner=US).number == 1
    with pytest.raises(BudgetSpentError):
        begin(study, owner=US)


def test_queued_trials_whose_answer_was_lost_are_queued_once(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    (before,) = study.enqueue([CONFIGURATION], SPACE)
    lose_next_answer(monkeypatch)
    keys = study.enqueue([CONFIGURATION] * 2, SPACE)
    assert [trial.id for trial in study.trials()] == [before, *keys]
    assert len(keys) == 2


def test_started_trial_of_the_queue_whose_answer_was_lost_is_ours(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    (key,) = study.enqueue([CONFIGURATION], SPACE)
    lose_next_answer(monkeypatch)
    lease = study.start_queued(key, owner=US)
    study.tell(lease, TrialState.COMPLETE, value=0.5)
    assert (study.trials()[0].attempt, study.trials()[0].value) == (1, 0.5)


def test_claimed_trial_whose_answer_was_lost_is_ours_and_counts_one_loss(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = begin(study, ttl_s=0.0)
    lose_next_answer(monkeypatch)
    lease = study.claim(old.trial_id, owner=US)
    assert lease.attempt == 2
    study.report(lease, 1, 0.5)
    assert (study.trials()[0].attempt, study.trials()[0].losses) == (2, 1)


def test_trial_that_somebody_else_created_meanwhile_is_not_taken_for_ours(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_next_answer(monkeypatch)
    begin(study, owner=ELSEWHERE)
    other = begin(study, owner=US)
    assert other.number == 1


# Locks of SQLite


def test_trouble_that_many_threads_meet_is_told_once(
    file: Path, study: Study, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as foreign, ThreadPoolExecutor(4) as threads:
        foreign.execute("BEGIN EXCLUSIVE")
        writes = [threads.submit(study.set_attribute, f"key {n}", n) for n in range(4)]
        until(lambda: caplog.records, 10.0, "a word about the lock")
        threading.Event().wait(0.5)  # many more attempts fail meanwhile
        assert not any(write.done() for write in writes)
        foreign.execute("ROLLBACK")
        for write in writes:
            write.result(timeout=20.0)
    assert [record.message for record in caplog.records] == ["database is busy, trying again: database is locked"]
    assert len(study.attributes) == 4


def test_process_in_a_hurry_waits_no_longer(file: Path, study: Study, caplog: pytest.LogCaptureFixture) -> None:
    with Storage(f"sqlite:///{file}") as storage, closing(sqlite3.connect(file, isolation_level=None)) as foreign:
        opened = storage.open_study("study")
        foreign.execute("BEGIN EXCLUSIVE")
        with ThreadPoolExecutor(1) as thread:
            write = thread.submit(opened.set_attribute, "key", 1)
            until(lambda: caplog.records, 10.0, "a word about the lock")
            storage.hurry()
            with pytest.raises(StorageError, match="stayed busy"):
                write.result(timeout=10.0)


# Many processes


def check_numbers(url: str) -> None:
    """Eight processes make two hundred trials."""
    spawn = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(8, mp_context=spawn) as processes:
        claims = list(processes.map(claim_places_of, [url] * 8, [200] * 8))
    assert sorted(number for claim in claims for number in claim) == list(range(200))
    with Storage(url) as storage:
        assert [trial.number for trial in storage.open_study("shared").trials()] == list(range(200))


@pytest.mark.slow
def test_numbers_of_eight_processes_on_sqlite_are_whole(file: Path) -> None:
    check_numbers(f"sqlite:///{file}")


@pytest.mark.slow
@pytest.mark.postgres
def test_numbers_of_eight_processes_on_a_server_are_whole(postgres_url: str) -> None:
    check_numbers(postgres_url)


# Locks of a server


@pytest.mark.slow
@pytest.mark.postgres
def test_foreign_lock_on_the_study_is_waited_for(postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
    with Storage(postgres_url) as storage, psycopg.connect(postgres_url) as foreign:
        study = storage.create_study("study", direction="minimize")
        foreign.execute("SELECT * FROM studies FOR UPDATE")
        with ThreadPoolExecutor(1) as thread:
            birth = thread.submit(begin, study, owner=US)
            until(lambda: caplog.records, 20.0, "a word about the lock, which is longer than one wait for it")
            threading.Event().wait(15.0 - 10.0)  # the whole lock lasts 15 s
            assert not birth.done()
            foreign.rollback()
            assert birth.result(timeout=20.0).number == 0
    (line,) = [record.message for record in caplog.records]
    assert line == "database is busy, trying again: canceling statement due to lock timeout"


@pytest.mark.postgres
def test_victim_of_a_deadlock_tries_again(postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
    with Storage(postgres_url) as storage, psycopg.connect(postgres_url) as foreign:
        study = storage.create_study("study", direction="minimize")
        old = begin(study, ttl_s=0.0)
        foreign.execute("SET deadlock_timeout = '60s'")  # it is we who shall notice
        foreign.execute("SELECT * FROM trials FOR UPDATE")
        with ThreadPoolExecutor(1) as thread:
            claim = thread.submit(study.claim, old.trial_id, owner=US)
            until(lambda: _waiting(postgres_url), 10.0, "the lock that we wait for")
            foreign.execute("SELECT * FROM automl_trials FOR UPDATE")
            foreign.rollback()
            assert claim.result(timeout=20.0).attempt == 2
        assert study.trials()[0].losses == 1
    assert [record.message for record in caplog.records] == ["database is busy, trying again: deadlock detected"]


@pytest.mark.postgres
def test_process_that_stops_within_a_transaction_holds_its_locks_no_longer(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "_IDLE_TIMEOUT_S", 1)
    with Storage(postgres_url) as storage:
        study = storage.create_study("study", direction="minimize")
        stopped = storage.engine.connect().execution_options(isolation_level="READ COMMITTED")
        stopped.execute(select(optuna_tables.studies).with_for_update())
        assert begin(study).number == 0
        connection = stopped.connection.driver_connection
        assert connection is not None
        connection.close()
        stopped.invalidate()
        stopped.close()


@pytest.mark.postgres
def test_process_that_wakes_up_within_a_transaction_repeats_it(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(engines, "_IDLE_TIMEOUT_S", 1)
    with Storage(postgres_url) as storage:
        study = storage.create_study("study", direction="minimize")
        tries = []

        def work(connection: Connection) -> None:
            connection.execute(select(optuna_tables.studies).with_for_update())
            tries.append("begun")
            if len(tries) == 1:
                threading.Event().wait(1.5)  # as if it was stopped for longer than the server allows
            write_study_attribute(connection, study.id, "key", "1")

        Transactions(storage.engine, storage.url).write(work)
        assert study.attributes == {"key": 1}
    assert len(tries) == 2
    assert len(caplog.records) == 1


@pytest.mark.postgres
def test_connections_that_the_server_ends_are_made_anew(postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
    with Storage(postgres_url) as storage, psycopg.connect(postgres_url, autocommit=True) as foreign:
        study = storage.create_study("study", direction="minimize")
        lease = begin(study)
        for epoch in range(1, 6):
            ours = "FROM pg_stat_activity WHERE application_name = 'automl'"
            foreign.execute(f"SELECT pg_terminate_backend(pid) {ours}".encode())
            study.report(lease, epoch, 1.0 / epoch)
        study.tell(lease, TrialState.COMPLETE, value=0.2)
        (trial,) = study.trials()
    assert dict(trial.reports) == {epoch: 1.0 / epoch for epoch in range(1, 6)}
    assert (trial.state, trial.attempt) == (TrialState.COMPLETE, 1)
    assert len(caplog.records) == 1


@pytest.mark.postgres
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_server_that_starts_anew_is_waited_for(caplog: pytest.LogCaptureFixture, mode: str) -> None:
    with stoppable_postgres() as server, Storage(server.address) as storage, caplog.at_level(logging.WARNING):
        study = storage.create_study("study", direction="minimize")
        lease = begin(study)
        server.stop(mode)
        with ThreadPoolExecutor(1) as thread:
            report = thread.submit(study.report, lease, 1, 0.5)
            until(lambda: caplog.records, 10.0, "a word about the server")
            server.start()
            report.result(timeout=20.0)
        study.tell(lease, TrialState.COMPLETE, value=0.5)
        assert study.trials()[0].value == 0.5
    assert len(caplog.records) == 1


def _waiting(url: str) -> bool:
    query = (
        b"SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND application_name = %s"
    )
    with psycopg.connect(url) as connection:
        row = connection.execute(query, ["automl"]).fetchone()
    return row is not None and row[0] > 0
