"""How many connections are held, and what happens where the server has no more."""

import multiprocessing
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from studies.identity import process_identity
from studies.leases import LeaseKeeper
from studies.storage import Storage
from studies.trial import TrialState
from tests.contracts.study_contract import begin
from tests.helpers.commands import until
from tests.helpers.postgres import running_postgres

PROCESSES, TRIALS = 6, 4
COUNT = b"SELECT count(*) FROM pg_stat_activity WHERE application_name = 'automl'"


def search(url: str, name: str) -> int:
    """Work on some trials while their leases are renewed; how many were ended."""
    with Storage(url) as storage:
        study = storage.create_study(name, direction="minimize")
        with LeaseKeeper(study, ttl_s=0.3) as keeper:
            for _ in range(TRIALS):
                lease = begin(study, owner=process_identity())
                keeper.add(lease)
                for epoch in (1, 2, 3):
                    study.report(lease, epoch, 1.0 / epoch)
                keeper.discard(lease)
                study.tell(lease, TrialState.COMPLETE, value=0.5)
        return study.counts()[TrialState.COMPLETE]


@contextmanager
def most_seen(server: str) -> Iterator[list[int]]:
    """Watch the number of our connections; the largest one is the last of the list."""
    seen, ended = [0], threading.Event()

    def watch() -> None:
        with psycopg.connect(server, autocommit=True) as connection:
            while not ended.wait(0.02):
                row = connection.execute(COUNT).fetchone()
                seen.append(max(seen[-1], row[0] if row else 0))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


@pytest.mark.postgres
@pytest.mark.slow
def test_six_processes_share_a_server_of_twelve_connections() -> None:
    spawn = multiprocessing.get_context("spawn")
    with running_postgres(max_connections=12, superuser_reserved_connections=3) as server:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute("CREATE ROLE team LOGIN")
            connection.execute("CREATE DATABASE studies OWNER team")
        url = server.replace("postgres@", "team@").replace("/postgres", "/studies")
        # A person's role may hold nine of the twelve, fewer than two for each process.
        with most_seen(server) as seen, ProcessPoolExecutor(PROCESSES, mp_context=spawn) as processes:
            ended = list(processes.map(search, [url] * PROCESSES, [f"study {n}" for n in range(PROCESSES)]))
    assert ended == [TRIALS] * PROCESSES
    assert 0 < seen[-1] <= 9


@pytest.mark.postgres
def test_process_with_fifty_studies_open_holds_few_connections(postgres_url: str) -> None:
    storages = [Storage(postgres_url) for _ in range(50)]
    studies = [storage.create_study(f"study {n}", direction="minimize") for n, storage in enumerate(storages)]
    with most_seen(postgres_url) as seen:
        threads = [threading.Thread(target=study.trials) for study in studies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for study in studies[:3]:
            assert study.as_optuna().trials == []
        until(lambda: len(seen) > 3, 10.0, "a look at the connections")
    assert 0 < seen[-1] <= 9  # six of ours, one of Optuna's, and those of Optuna's that are closing
    for storage in storages:
        storage.close()
