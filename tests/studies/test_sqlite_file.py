"""A SQLite file on its own: copied after a crash, and read without the right to write."""

import logging
import os
import shutil
import signal
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest
from sqlalchemy import event

from studies.errors import StorageError
from studies.storage import Storage
from studies.study import Study
from studies.trial import TrialState
from tests.contracts.study_contract import ELSEWHERE, FORK, begin, complete

NOBODY = 65534


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users may look into, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


def make_and_die(file: Path) -> None:
    """Leave a study with a complete and a paused trial as a process does that is killed."""
    storage = Storage(f"sqlite:///{file}")
    study = storage.create_study("study", direction="minimize")
    complete(study, 0.5)
    study.pause(begin(study))
    os.kill(os.getpid(), signal.SIGKILL)


def killed(work: Callable[[Path], None], file: Path) -> None:
    child = FORK.Process(target=work, args=(file,))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert file.with_name(f"{file.name}-wal").stat().st_size > 0


def make_empty_and_die(file: Path) -> None:
    storage = Storage(f"sqlite:///{file}")
    storage.create_study("study", direction="minimize")
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(("work", "trials"), [(make_empty_and_die, 0), (make_and_die, 2)])
def test_copy_of_the_file_alone_is_whole_when_its_process_was_killed(
    tmp_path: Path, work: Callable[[Path], None], trials: int
) -> None:
    killed(work, tmp_path / "studies.db")
    shutil.copy(tmp_path / "studies.db", tmp_path / "copy.db")
    with Storage(f"sqlite:///{tmp_path}/copy.db") as copy:
        study = copy.open_study("study")
        assert [trial.number for trial in study.trials()] == list(range(trials))
        if trials:
            assert [trial.state for trial in study.trials()] == [TrialState.COMPLETE, TrialState.PAUSED]


def test_log_that_somebody_reads_is_settled_later(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "studies.db"
    with Storage(f"sqlite:///{file}") as storage:
        study = storage.create_study("study", direction="minimize")
        reader = sqlite3.connect(file, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM trials").fetchall()
        complete(study, 0.5)
        study.renew(())
        assert numbers_in_main_file(file) == []
        reader.close()
        complete(study, 0.25)
        study.renew(())
        assert numbers_in_main_file(file) == [0, 1]
    assert caplog.records == []


def test_log_that_cannot_be_settled_is_named_and_the_trial_is_stored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Storage(f"sqlite:///{tmp_path}/studies.db") as storage:
        study = storage.create_study("study", direction="minimize")
        lease = begin(study)
        storage.engine.dispose()
        event.listen(storage.engine, "connect", _forbid_to_settle)
        with caplog.at_level(logging.WARNING):
            study.renew([lease])
        assert study.trials()[0].state is TrialState.RUNNING
    assert "log stays beside its file for now: not authorized" in caplog.text


def _forbid_to_settle(connection: sqlite3.Connection, record: object) -> None:
    def is_allowed(action: int, first: str | None, *others: object) -> int:
        return sqlite3.SQLITE_DENY if first == "wal_checkpoint" else sqlite3.SQLITE_OK

    connection.set_authorizer(is_allowed)


def remove(file: Path) -> None:
    for one in file.parent.glob(f"{file.name}*"):
        one.unlink()


def replace(file: Path) -> None:
    copy = shutil.copy(file, file.with_name("copy.db"))
    remove(file)
    os.rename(copy, file)


@pytest.mark.parametrize("harm", [remove, replace])
def test_file_that_is_removed_or_replaced_is_noticed_and_the_next_storage_is_as_new(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    file = tmp_path / "studies.db"
    with Storage(f"sqlite:///{file}") as storage:
        study = storage.create_study("study", direction="minimize")
        lease = begin(study)
        harm(file)
        there = sorted(tmp_path.iterdir())
        attempts: tuple[Callable[[], object], ...] = (
            study.look,
            lambda: study.renew([lease]),
            lambda: study.pause(lease),
            lambda: storage.open_study("study"),
            study.look,
        )
        for attempt in attempts:
            message = refusal(attempt)
            assert message.startswith(f"the file {file} was removed or replaced while it was in use")
        assert sorted(tmp_path.iterdir()) == there
        with Storage(f"sqlite:///{file}") as anew:
            assert complete(anew.create_study("other", direction="minimize"), 0.5).number == 0
        assert "was removed or replaced" in refusal(study.look)


def test_file_that_is_moved_away_and_back_is_used_by_the_next_storage(tmp_path: Path) -> None:
    file = tmp_path / "studies.db"
    with Storage(f"sqlite:///{file}") as storage:
        study = storage.create_study("study", direction="minimize")
        file.rename(tmp_path / "away.db")
        assert "was removed or replaced" in refusal(study.look)
        (tmp_path / "away.db").rename(file)
        with Storage(f"sqlite:///{file}") as anew:
            assert anew.open_study("study").look().trials == ()


def numbers_in_main_file(file: Path) -> list[int]:
    """Read a copy of the main file without its log."""
    copy = shutil.copy(file, file.with_name("main.db"))
    connection = sqlite3.connect(f"file:{copy}?immutable=1", uri=True)
    numbers = [row[0] for row in connection.execute("SELECT number FROM trials ORDER BY number")]
    connection.close()
    return numbers


def read_everything(file: Path) -> tuple[list[str], list[float | None], int]:
    with Storage(f"sqlite:///{file}") as storage:
        study = storage.open_study("study")
        names = [summary.name for summary in storage.studies()]
        return names, [trial.value for trial in study.trials()], len(study.as_optuna().trials)


def read_as_nobody(file: Path) -> tuple[list[str], list[float | None], int]:
    become_nobody()
    return read_everything(file)


def write_as_nobody(file: Path) -> list[str]:
    """The errors of every kind of writing."""
    become_nobody()
    with Storage(f"sqlite:///{file}") as storage:
        study = storage.open_study("study")
        attempts: tuple[Callable[[], object], ...] = (
            lambda: begin(study),
            lambda: study.set_attribute("note", 1),
            lambda: study.claim(study.trials()[1].id, owner=ELSEWHERE),
            lambda: storage.create_study("other", direction="minimize"),
        )
        return [refusal(attempt) for attempt in attempts]


def refusal(attempt: Callable[[], object]) -> str:
    with pytest.raises(StorageError) as error:
        attempt()
    return str(error.value)


def become_nobody() -> None:
    if os.geteuid() == 0:  # permissions do not hold root back
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


@pytest.mark.parametrize("was_killed", [False, True], ids=["closed", "killed"])
@pytest.mark.parametrize(
    ("file_mode", "folder_mode"),
    [(0o444, 0o777), (0o444, 0o555), (0o666, 0o555)],
    ids=["file", "file and folder", "folder"],
)
def test_what_may_not_be_written_can_be_read(folder: Path, file_mode: int, folder_mode: int, was_killed: bool) -> None:
    file = folder / "studies.db"
    killed(make_and_die, file)
    if not was_killed:
        read_everything(file)  # the last one to close takes the log away
    file.chmod(file_mode)
    folder.chmod(folder_mode)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")}
    with ProcessPoolExecutor(max_workers=1, mp_context=FORK) as child:
        assert child.submit(read_as_nobody, file).result() == (["study"], [0.5, None], 2)
        errors = child.submit(write_as_nobody, file).result()
    assert len(errors) == 4
    assert set(errors) == {
        f"sqlite:///{file}: attempt to write a readonly database; check the permissions of the file and its folder"
    }
    assert {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")} == before


def test_reader_without_the_right_to_write_sees_what_the_owner_writes_meanwhile(folder: Path) -> None:
    file = folder / "studies.db"
    with Storage(f"sqlite:///{file}") as storage:
        complete(storage.create_study("study", direction="minimize"), 0.5)
    file.chmod(0o644)
    ready, written = FORK.Event(), FORK.Event()
    seen: SimpleQueue[int] = FORK.SimpleQueue()
    reader = FORK.Process(target=_look_twice, args=(file, ready, written, seen))
    reader.start()
    assert ready.wait(10.0)
    with Storage(f"sqlite:///{file}") as storage:
        complete(storage.open_study("study"), 0.25)
        written.set()
        reader.join(10.0)
    assert reader.exitcode == 0
    assert (seen.get(), seen.get()) == (1, 2)


def _look_twice(file: Path, ready: Event, written: Event, seen: "SimpleQueue[int]") -> None:
    become_nobody()
    with Storage(f"sqlite:///{file}") as storage:
        study = storage.open_study("study")
        seen.put(len(study.trials()))
        ready.set()
        assert written.wait(10.0)
        seen.put(len(study.trials()))


def test_name_with_signs_that_mean_something_in_an_address(tmp_path: Path) -> None:
    file = tmp_path / "50% é?mode=ro#1 {x}.db"
    with Storage(f"{file}") as storage:
        study: Study = storage.create_study("study", direction="minimize")
        complete(study, 0.5)
        assert len(study.as_optuna().trials) == 1
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
