import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import event

from studies import engines
from studies.leases import LeaseKeeper
from studies.storage import Storage
from studies.study import Study
from studies.trial import TrialState
from tests.contracts.study_contract import ELSEWHERE, begin, complete
from tests.helpers.lost_answers import lose_next_answer

TTL_S = 0.3


@pytest.fixture
def storage(file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    monkeypatch.setattr(engines, "_BUSY_TIMEOUT_S", 0.01)
    with Storage(f"sqlite:///{file}") as storage:
        yield storage


@pytest.fixture
def study(storage: Storage) -> Study:
    return storage.create_study("study", direction="minimize")


def eventually(condition: Callable[[], object], timeout_s: float = 10.0) -> None:
    """Ask again and again until the condition holds."""
    pause = threading.Event()
    for _ in range(int(timeout_s / 0.02)):
        if condition():
            return
        pause.wait(0.02)
    raise AssertionError(f"{condition} did not come true in {timeout_s} s")


def test_keeper_keeps_leases_alive_longer_than_they_last(storage: Storage, study: Study) -> None:
    renewed = threading.Semaphore(0)

    def count(connection: object, cursor: object, statement: str, *others: object) -> None:
        if statement.startswith("UPDATE automl_trials SET expires_at"):
            renewed.release()

    event.listen(storage.engine, "after_cursor_execute", count)
    with LeaseKeeper(study, ttl_s=TTL_S) as keeper:
        first, second = begin(study, ttl_s=TTL_S), begin(study, ttl_s=TTL_S)
        keeper.add(first)
        keeper.add(second)
        for _ in range(6):  # twice the time that a lease lasts
            assert renewed.acquire(timeout=10.0)
        assert study.claimable() == ()
        assert keeper.lost() == frozenset()
    eventually(lambda: len(study.claimable()) == 2)


def test_keeper_tells_what_was_taken_and_what_was_ended(study: Study) -> None:
    with LeaseKeeper(study, ttl_s=TTL_S) as keeper:
        kept, taken, ended = begin(study), begin(study), begin(study)
        for lease in (kept, taken, ended):
            keeper.add(lease)
        study.pause(taken)
        study.claim(taken.trial_id, owner=ELSEWHERE)
        study.tell(ended, TrialState.FAILED, cause="lost")
        eventually(lambda: keeper.lost() == {taken, ended})
        keeper.discard(taken)
        assert keeper.lost() == {ended}
        keeper.discard(taken)


def test_keeper_says_once_that_the_database_is_away_and_goes_on(
    file: Path, study: Study, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "studies"), LeaseKeeper(study, ttl_s=TTL_S) as keeper:
        lease = begin(study, ttl_s=TTL_S)
        keeper.add(lease)
        foreign = sqlite3.connect(file, isolation_level=None)
        foreign.execute("BEGIN EXCLUSIVE")
        eventually(lambda: "trying again" in caplog.text)
        eventually(lambda: keeper._is_away)
        foreign.execute("ROLLBACK")
        foreign.close()
        eventually(lambda: "answers again" in caplog.text)
        assert keeper.lost() == frozenset()
    assert [record.message for record in caplog.records] == [
        "database is busy, trying again: database is locked",
        "database answers again, leases are renewed",
    ]


def test_keeper_gives_leases_up_when_the_database_stays_away(file: Path, study: Study) -> None:
    with LeaseKeeper(study, ttl_s=TTL_S, patience_s=0.0) as keeper:
        lease = begin(study)
        keeper.add(lease)
        foreign = sqlite3.connect(file, isolation_level=None)
        foreign.execute("BEGIN EXCLUSIVE")
        eventually(lambda: keeper.lost() == {lease})
        foreign.close()


def test_keeper_stops_at_once(study: Study) -> None:
    with LeaseKeeper(study, ttl_s=3600.0) as keeper:
        keeper.add(begin(study))
    assert not keeper._thread.is_alive()


@pytest.mark.parametrize("ttl_s", [0.0, -1.0])
def test_keeper_without_time_is_refused(study: Study, ttl_s: float) -> None:
    with pytest.raises(ValueError, match="seconds above 0"):
        LeaseKeeper(study, ttl_s=ttl_s)


def test_tell_whose_answer_was_lost_is_stored_once(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = begin(study)
    lose_next_answer(monkeypatch)
    study.tell(lease, TrialState.COMPLETE, value=0.5)
    assert study.trials()[0].value == 0.5
    other = begin(study)
    lose_next_answer(monkeypatch)
    study.pause(other)
    assert study.trials()[1].state is TrialState.PAUSED
    assert complete(study, 0.25).number == 2
