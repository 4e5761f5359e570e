"""Searches in trouble, one kind at a time: locks, a server that rests, killed and stopped processes, a full disk."""

import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from automl import session
from automl.errors import SearchCutOffError
from automl.events import EpochReported, Event, TrialEnded
from automl.executors.inline import InlineExecutor
from automl.observer import Observer
from automl.randomness import suggestion_generator
from automl.registry import sampler_class
from studies import engines
from studies.errors import StudyNotFoundError
from studies.schema.tables import automl_reports
from studies.storage import Storage
from studies.study import Study
from studies.trial import Lease, Trial, TrialState
from tests.automl.conftest import Search
from tests.helpers import steady_toy, toy
from tests.helpers.commands import Ended, environment_of, until
from tests.helpers.full_disk import SmallDisk, small_disk
from tests.helpers.postgres import free_port, stoppable_postgres
from tests.helpers.searches import ForkedSearch
from tests.helpers.toy import loss_after
from trainers.config import TrainTask
from trainers.distributed import Ranks
from trainers.reporting import Reporter

__all__ = ["small_disk"]

EPOCHS = 5
SHORT_LEASE_S = 2.0


class Place:
    """A folder with a database, in which searches run."""

    def __init__(self, folder: Path, storage: str | None = None) -> None:
        self.folder = folder
        self.storage = storage or f"sqlite:///{folder}/studies.db"

    def search(
        self,
        *more: str | int,
        space: str = "steady_toy",
        study: str = "shared",
        trials: int = 6,
        epochs: int = EPOCHS,
        lease_s: float | None = None,
    ) -> ForkedSearch:
        return ForkedSearch(
            "search", "--space", f"tests.helpers.{space}", "--storage", self.storage, "--artifacts",
            self.folder / "artifacts", "--study", study, "--metric", "loss", "--epochs", epochs, "--trials", trials,
            "--sampler", "random", "--pruner", "none", "--executor", "inline", "--quiet", *more,
            folder=self.folder, environment=environment_of(self.folder), lease_s=lease_s,
        )  # fmt: skip

    @contextmanager
    def searches(self, count: int, *more: str | int, **fields: Any) -> Iterator[list[ForkedSearch]]:
        with ExitStack() as stack:
            yield [stack.enter_context(self.search(*more, **fields)) for _ in range(count)]

    def study(self, name: str = "shared") -> Study:
        return Storage(self.storage).open_study(name)

    def trials(self, name: str = "shared") -> tuple[Trial, ...]:
        try:
            return self.study(name).trials()
        except StudyNotFoundError:
            return ()  # not begun yet

    def wait_for_trials(self, count: int) -> None:
        until(lambda: len(self.trials()) >= count, 60.0, f"{count} trials")

    def wait_for_epoch(self, number: int, epoch: int, name: str = "shared") -> Trial:
        """Wait until a trial runs and has finished this epoch."""

        def found() -> Trial | None:
            trials = self.trials(name)
            is_there = number < len(trials) and trials[number].state is TrialState.RUNNING
            return trials[number] if is_there and trials[number].last_epoch >= epoch else None

        trial = until(found, 30.0, f"epoch {epoch} of trial {number}")
        assert trial is not None
        return trial


class Saboteur(Observer):
    """Does something at every event of a kind, of the trials from a number on."""

    def __init__(self, kind: type[EpochReported] | type[TrialEnded], act: Callable[[], None], number: int = 0) -> None:
        self._kind = kind
        self._act = act
        self._number = number

    def notify(self, event: Event) -> None:
        if isinstance(event, self._kind) and event.number >= self._number:
            self._act()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def done(search: ForkedSearch, timeout_s: float = 60.0) -> Ended:
    ended = search.ended(timeout_s)
    assert ended.code == 0, ended
    return ended


def check_whole(trial: Trial, epochs: int = EPOCHS) -> None:
    """A complete trial has one value for each epoch, which is what the formula says."""
    assert trial.state is TrialState.COMPLETE, trial
    x = float(str(trial.configuration["x"]))
    assert dict(trial.reports) == {epoch: loss_after(epoch, x) for epoch in range(1, epochs + 1)}


def attempts_of_epochs(place: Place, trial: Trial) -> list[tuple[int, int]]:
    table = automl_reports.c
    query = select(table.epoch, table.attempt).where(table.trial_id == trial.id).order_by(table.epoch)
    with Storage(place.storage) as storage, storage.engine.connect() as connection:
        return [(row.epoch, row.attempt) for row in connection.execute(query)]


# One process


def test_trial_of_ours_whose_lease_is_over_goes_on_here(
    place: Place, toy_search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a long stop of the process: it has a free slot, and finds a trial that nobody seems to work on."""

    def end_leases() -> None:
        with Storage(place.storage) as storage, storage.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE automl_trials SET expires_at = 0 WHERE owner IS NOT NULL")

    monkeypatch.setattr(InlineExecutor, "slots", 2)
    outcome = toy_search(
        space="tests.helpers.slow_toy", trials=2, epochs=3, observer=Saboteur(EpochReported, end_leases)
    )
    assert [(trial.attempt, trial.losses) for trial in outcome.study.trials()] == [(1, 0), (1, 0)]
    for trial in outcome.study.trials():
        check_whole(trial, epochs=3)


def test_trial_that_is_taken_while_it_is_given_up_ends_no_search(
    place: Place, toy_search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Storage(place.storage).create_study("toy", direction="minimize")
    for _ in range(2):
        lost = study.create_trial(
            len(study.trials()), {"x": 0.5}, toy.SPACE.distributions(), owner="other-machine", ttl_s=0.0
        )
    tell = Study.tell

    def too_late(this: Study, lease: Lease, *states: TrialState, **fields: Any) -> None:
        monkeypatch.setattr(Study, "tell", tell)
        with Storage(place.storage) as storage, storage.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE automl_trials SET expires_at = 0 WHERE owner IS NOT NULL")
        other = study.claim(lease.trial_id, owner="other-machine", ttl_s=3600.0)
        study.tell(other, TrialState.COMPLETE, value=0.5)
        tell(this, lease, *states, **fields)

    monkeypatch.setattr(Study, "tell", too_late)
    outcome = toy_search(trials=2, max_retries=0)
    assert [(trial.state, trial.attempt) for trial in outcome.study.trials()] == [
        (TrialState.COMPLETE, 3),
        (TrialState.FAILED, 2),
    ]
    assert outcome.study.trials()[lost.number].cause == "lost"


# The budget of many processes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_six_processes_share_twenty_trials_exactly(place: Place, seed: int) -> None:
    with place.searches(6, "--seed", seed, trials=20, epochs=2) as searches:
        for search in searches:
            done(search)
    trials = place.trials()
    assert [(trial.number, trial.state, trial.attempt) for trial in trials] == [
        (number, TrialState.COMPLETE, 1) for number in range(20)
    ]
    assert len({trial.configuration["x"] for trial in trials}) == 20


def test_budget_of_a_study_that_goes_on_is_exact(toy_search: Search) -> None:
    def total(trials: int) -> int:
        return len(toy_search(trials=trials).study.trials())

    assert [total(10), total(10), total(15)] == [10, 10, 15]


@pytest.mark.slow
@pytest.mark.chaos
def test_budget_after_a_killed_process_is_exact(place: Place) -> None:
    with place.search(trials=10) as search:
        place.wait_for_epoch(6, 1)
        search.send(signal.SIGKILL)
        search.ended()
    assert sum(trial.state is TrialState.COMPLETE for trial in place.trials()) == 6
    with place.search(trials=10) as search:
        done(search)
    trials = place.trials()
    assert [trial.attempt for trial in trials] == [1] * 6 + [2] + [1] * 3
    for trial in trials:
        check_whole(trial)


@pytest.mark.slow
@pytest.mark.chaos
def test_resumed_search_has_learned_from_the_trials_before(place: Place) -> None:
    learning = ("--sampler", "tpe", "--seed", 3)
    with place.searches(2, *learning, trials=30, epochs=3) as searches:
        until(lambda: sum(trial.state.is_ended for trial in place.trials()) >= 10, 30.0, "ten ended trials")
        for search in searches:
            search.send(signal.SIGSTOP)
        for search in searches:
            search.send(signal.SIGKILL)
            search.ended()
    before = len(place.trials())
    with place.search(*learning, trials=30, epochs=3) as search:
        done(search)
    trials = place.trials()
    assert len(trials) == 30
    for trial in trials:
        check_whole(trial, epochs=3)
    sampler = sampler_class("tpe")("minimize")
    for trial in trials[before:]:
        blind = sampler.suggest(steady_toy.SPACE, (), suggestion_generator(3, trial.number))
        assert trial.configuration["x"] != blind["x"]


# Take-over


@pytest.mark.slow
@pytest.mark.chaos
def test_retried_trial_has_each_epoch_once_and_is_lost_after_the_last_retry(place: Place) -> None:
    def kill_in(epoch: int, attempt: int) -> None:
        """Kill a search whose trial 0 trains the epoch after this one."""
        with place.search("--max-retries", 2, space="slow_toy", trials=2) as search:
            trial = place.wait_for_epoch(0, epoch)
            assert trial.attempt == attempt
            search.send(signal.SIGKILL)
            search.ended()

    kill_in(epoch=2, attempt=1)
    kill_in(epoch=3, attempt=2)
    assert attempts_of_epochs(place, place.trials()[0]) == [(1, 1), (2, 1), (3, 2)]
    kill_in(epoch=4, attempt=3)
    with place.search("--max-retries", 2, space="slow_toy", trials=2) as search:
        done(search)
    lost, other = place.trials()
    assert (lost.state, lost.cause, lost.losses) == (TrialState.FAILED, "lost", 3)
    assert attempts_of_epochs(place, lost) == [(1, 1), (2, 1), (3, 2), (4, 3)]
    check_whole(other)


@pytest.mark.chaos
def test_trial_killed_in_its_fourth_epoch_goes_on_from_the_third(place: Place) -> None:
    with place.search(space="slow_toy", trials=1) as search:
        place.wait_for_epoch(0, 3)
        search.send(signal.SIGKILL)
        search.ended()
    with place.search(space="slow_toy", trials=1) as search:
        done(search)
    (trial,) = place.trials()
    check_whole(trial)
    assert attempts_of_epochs(place, trial) == [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)]


def test_trial_with_an_error_of_its_own_is_not_retried(toy_search: Search, storage: str) -> None:
    from tests.helpers.moody_toy import SPACE

    study = Storage(storage).create_study("toy", direction="minimize")
    study.enqueue([{"x": 0.5, "mood": "raise_0", "epoch_s": 0.0}], SPACE.distributions())
    outcome = toy_search(space="tests.helpers.moody_toy", trials=1)
    (trial,) = outcome.study.trials()
    assert (trial.state, trial.cause, trial.attempt, trial.losses) == (TrialState.FAILED, "user_error", 1, 0)


@pytest.mark.slow
@pytest.mark.chaos
def test_trial_of_a_killed_process_is_taken_over_within_seconds(place: Place) -> None:
    check_take_over(place, signal.SIGKILL, at_least_s=0.0, at_most_s=2.0)


@pytest.mark.slow
@pytest.mark.chaos
def test_trial_of_a_stopped_process_is_taken_over_when_its_lease_ends(place: Place) -> None:
    # The last renewal may have been a sixth of the lease before the stop.
    check_take_over(place, signal.SIGSTOP, at_least_s=SHORT_LEASE_S * 4 / 6, at_most_s=SHORT_LEASE_S + 2.0)


def check_take_over(place: Place, number: signal.Signals, *, at_least_s: float, at_most_s: float) -> None:
    # There is work for two, so that the third one waits.
    with place.searches(3, space="slow_toy", trials=2, epochs=6, lease_s=SHORT_LEASE_S) as searches:
        place.wait_for_epoch(0, 2)
        victim = place.wait_for_epoch(1, 2)
        search, *others = sorted(searches, key=lambda one: f"/{one.pid}/" not in str(victim.owner))
        search.send(number)
        began = time.monotonic()
        until(lambda: place.trials()[1].attempt == 2, 60.0, "the take-over")
        took_s = time.monotonic() - began
        for other in others:
            done(other)
        if number is signal.SIGSTOP:
            search.send(signal.SIGCONT)
            assert "it goes on elsewhere" in done(search).err
    assert at_least_s <= took_s <= at_most_s
    for trial in place.trials():
        check_whole(trial, epochs=6)
    assert place.trials()[1].losses == 1


@pytest.mark.slow
@pytest.mark.chaos
def test_stopped_trial_of_another_study_is_left_alone(place: Place) -> None:
    with place.searches(1, study="fast", trials=2, epochs=40, lease_s=0.5) as (fast,):
        place.wait_for_epoch(0, 1, "fast")
        fast.send(signal.SIGSTOP)
        with place.search(study="slow", trials=2, epochs=40, lease_s=0.5) as slow:
            theirs = place.wait_for_epoch(0, 1, "slow")
            slow.send(signal.SIGSTOP)
            with place.search(study="fast", trials=2, epochs=40, lease_s=0.5) as again:
                done(again)
            (left,) = place.trials("slow")
    assert [(trial.state, trial.attempt) for trial in place.trials("fast")] == [
        (TrialState.COMPLETE, 2),
        (TrialState.COMPLETE, 1),
    ]
    assert (left.state, left.attempt, left.owner) == (TrialState.RUNNING, 1, theirs.owner)


def test_trials_of_the_queue_run_once_each_among_four_processes(place: Place) -> None:
    with Storage(place.storage) as storage:
        study = storage.create_study("shared", direction="minimize")
        wish = {"x": 0.5, "epoch_s": steady_toy.EPOCH_S}
        study.enqueue([wish], steady_toy.SPACE.distributions())
        study.enqueue([wish], steady_toy.SPACE.distributions())
    with place.searches(4, trials=8, epochs=3) as searches:
        for search in searches:
            done(search)
    trials = place.trials()
    assert [trial.attempt for trial in trials] == [1] * 8
    assert [trial.number for trial in trials if trial.configuration["x"] == 0.5] == [0, 1]
    for trial in trials:
        check_whole(trial, epochs=3)


# Databases that are away


@contextmanager
def foreign_lock(file: Path) -> Iterator[None]:
    """Another program holds the only right to write."""
    with closing(sqlite3.connect(file, isolation_level=None, timeout=60.0, check_same_thread=False)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")


@contextmanager
def again_and_again(ask: Callable[[], None], pause_s: float) -> Iterator[list[int]]:
    """Ask all the time in a thread; an error there is the test's. The list holds how often it was answered."""
    ended, answered, errors = threading.Event(), [0], list[Exception]()

    def run() -> None:
        try:
            while not ended.wait(pause_s):
                ask()
                answered[0] += 1
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield answered
    finally:
        ended.set()
        thread.join()
    assert errors == []


@contextmanager
def dashboard(place: Place, port: int) -> Iterator[Callable[[], None]]:
    """An open optuna-dashboard; what a page in a browser asks of it all the time."""
    program = [str(Path(sys.executable).with_name("optuna-dashboard")), place.storage, "--port", str(port)]
    with subprocess.Popen(program, cwd=place.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        address = f"http://127.0.0.1:{port}/api/studies"

        def is_open() -> bool:
            with suppress(OSError):
                urllib.request.urlopen(address, timeout=5.0).close()
                return True
            return False

        def ask() -> None:
            with urllib.request.urlopen(f"{address}/1", timeout=60.0) as answer:
                assert len(json.load(answer)["trials"]) <= 60

        try:
            until(is_open, 60.0, "the dashboard")
            yield ask
        finally:
            server.kill()


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_twelve_searches_survive_foreign_locks_while_others_look_on(place: Place) -> None:
    def look() -> None:
        counts = place.study().counts()
        assert sum(counts.values()) <= 60

    with Storage(place.storage) as storage:
        storage.create_study("shared", direction="minimize")
    with ExitStack() as stack:
        looks = stack.enter_context(again_and_again(look, 0.2))
        pages = stack.enter_context(again_and_again(stack.enter_context(dashboard(place, free_port())), 0.2))
        searches = stack.enter_context(place.searches(12, trials=60, epochs=4))
        for begun in (6, 24):
            place.wait_for_trials(begun)
            with foreign_lock(place.folder / "studies.db"):
                time.sleep(10.0)  # longer than one wait for a lock
        ended = [done(search, 120.0) for search in searches]
    assert looks[0] > 20
    assert pages[0] > 10
    trials = place.trials()
    assert [(trial.number, trial.state, trial.attempt) for trial in trials] == [
        (number, TrialState.COMPLETE, 1) for number in range(60)
    ]
    for trial in trials:
        check_whole(trial, epochs=4)
    words = [one.err.count("trying again") for one in ended]
    assert max(words) == 1
    assert sum(words) >= 6, "most of them wanted to write meanwhile"


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.timeout(240)
def test_server_that_rests_for_a_minute_costs_no_trial(tmp_path: Path) -> None:
    with stoppable_postgres() as server:
        place = Place(tmp_path, server.address)
        with place.searches(3, trials=12, epochs=20) as searches:
            place.wait_for_epoch(2, 2)
            server.stop()
            time.sleep(60.0)
            server.start()
            ended = [done(search) for search in searches]
        trials = place.trials()
        assert [(trial.number, trial.attempt, trial.losses) for trial in trials] == [(n, 1, 0) for n in range(12)]
        for trial in trials:
            check_whole(trial, epochs=20)
        for one in ended:
            # One line when it goes away, one when it is back.
            assert len(one.err.splitlines()) == 2, one
            assert "trying again" in one.err.splitlines()[0]


@pytest.mark.slow
@pytest.mark.postgres
def test_search_that_is_interrupted_while_the_server_rests_ends_soon_and_loses_nothing(tmp_path: Path) -> None:
    with stoppable_postgres() as server:
        place = Place(tmp_path, server.address)
        with place.search(trials=2, epochs=400) as search:
            place.wait_for_epoch(0, 2)
            server.stop()
            until(lambda: "trying again" in search.err, 10.0, "a word about the server")
            search.send(signal.SIGTERM)
            ended = search.ended(timeout_s=10.0)
        assert ended.code == 143, ended
        assert "what became of trial 0 lies in" in ended.err
        server.start()
        with place.search(trials=2, epochs=400) as search:
            place.wait_for_epoch(0, 10)
            search.send(signal.SIGTERM)
            assert search.ended().code == 143
        trial = place.trials()[0]
        assert (trial.state, trial.attempt, trial.losses) == (TrialState.PAUSED, 2, 0)


# Results that cannot be stored


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches of this process give a database up after a moment."""
    monkeypatch.setattr(engines, "_BUSY_TIMEOUT_S", 0.1)
    monkeypatch.setattr(session, "Storage", partial(Storage, patience_s=0.5))


def kept_files(folder: Path) -> list[Path]:
    return sorted((folder / "state" / "automl" / "outbox").glob("*/*"))


def lock_at_first(name: str, place: Place, monkeypatch: pytest.MonkeyPatch) -> ExitStack:
    """Somebody takes the database at the first call of a method of the study; closing it gives it back."""
    stack, method = ExitStack(), getattr(Study, name)

    def locked(*arguments: Any, **fields: Any) -> Any:
        monkeypatch.setattr(Study, name, method)
        stack.enter_context(foreign_lock(place.folder / "studies.db"))
        return method(*arguments, **fields)

    monkeypatch.setattr(Study, name, locked)
    return stack


@pytest.fixture
def lock_at_first_end(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[ExitStack]:
    """The database is taken exactly when the result of a trial is to be stored."""
    with lock_at_first("tell", place, monkeypatch) as stack:
        yield stack


@pytest.fixture
def lock_at_first_report(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[ExitStack]:
    """The database is taken exactly when the first epoch of a trial is to be stored."""
    with lock_at_first("report", place, monkeypatch) as stack:
        yield stack


@pytest.fixture
def trained_epochs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, int]]:
    """The x of the trial and the number of every epoch that a toy of this process trains."""
    epochs, train = list[tuple[float, int]](), toy.ToyTrainer._train

    def noted(trainer: toy.ToyTrainer, task: TrainTask, ranks: Ranks, reporter: Reporter, epoch: int) -> Any:
        epochs.append((float(str(task.configuration["x"])), epoch))
        return train(trainer, task, ranks, reporter, epoch)

    monkeypatch.setattr(toy.ToyTrainer, "_train", noted)
    return epochs


@pytest.mark.usefixtures("impatient")
def test_result_that_cannot_be_stored_is_stored_by_the_next_run(
    place: Place, toy_search: Search, lock_at_first_end: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SearchCutOffError, match="stayed busy") as raised:
        toy_search(trials=3)
    (file,) = kept_files(place.folder)
    # Whichever of the threads that wait for the database gives up first, what it says is the error; the other warns.
    assert f"what became of trial 0 lies in {file}" in str(raised.value) + caplog.text
    assert "automl resume toy" in str(raised.value)
    assert raised.value.exit_code == 1
    assert [trial.state for trial in place.trials("toy")] == [TrialState.RUNNING]
    lock_at_first_end.close()
    outcome = toy_search(trials=3)
    assert outcome.exit_code == 0
    assert kept_files(place.folder) == []
    trials = outcome.study.trials()
    assert [trial.attempt for trial in trials] == [1, 1, 1]
    for trial in trials:
        check_whole(trial, epochs=4)
        assert trial.value == min(trial.reports.values())
    assert trials[0].attributes["best_epoch"] == 4
    assert f"trial=0 complete, as it was kept in {file}" in caplog.text


def taken_over_elsewhere(place: Place) -> tuple[Study, Lease]:
    """Let another machine go on with the only trial of the toy study, whose lease is over."""
    study = place.study("toy")
    (trial,) = study.trials()
    with Storage(place.storage) as storage, storage.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE automl_trials SET expires_at = 0")
    return study, study.claim(trial.id, owner="other-machine")


@pytest.mark.usefixtures("impatient")
def test_kept_result_of_a_trial_that_went_on_elsewhere_is_refused(
    place: Place, toy_search: Search, lock_at_first_end: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SearchCutOffError):
        toy_search(trials=2)
    lock_at_first_end.close()
    study, lease = taken_over_elsewhere(place)
    study.tell(lease, TrialState.COMPLETE, value=0.75)
    outcome = toy_search(trials=2)
    assert outcome.study.trials()[0].value == 0.75
    assert outcome.study.trials()[0].attempt == 2
    assert "trial=0 the result kept in" in caplog.text
    assert "is not needed: the trial is complete" in caplog.text
    assert kept_files(place.folder) == []


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("epochs", [1, 3])
def test_epoch_that_cannot_be_stored_is_stored_by_the_next_run_and_not_trained_again(
    place: Place,
    toy_search: Search,
    lock_at_first_report: ExitStack,
    trained_epochs: list[tuple[float, int]],
    caplog: pytest.LogCaptureFixture,
    epochs: int,
) -> None:
    with pytest.raises(SearchCutOffError, match="stayed busy") as raised:
        toy_search(trials=1, epochs=epochs)
    (file,) = kept_files(place.folder)
    assert f"what became of trial 0 lies in {file}" in str(raised.value)
    assert [dict(trial.reports) for trial in place.trials("toy")] == [{}]
    lock_at_first_report.close()
    outcome = toy_search(trials=1, epochs=epochs)
    assert outcome.exit_code == 0
    (trial,) = outcome.study.trials()
    check_whole(trial, epochs=epochs)
    assert trial.value == min(trial.reports.values())
    assert set(outcome.study.reports(trial)[1]) == {"loss", "accuracy"}
    assert attempts_of_epochs(place, trial) == [(1, 1), *((epoch, 2) for epoch in range(2, epochs + 1))]
    assert trained_epochs == [(trial.configuration["x"], epoch) for epoch in range(1, epochs + 1)]
    assert f"trial=0 paused after epoch 1, as it was kept in {file}" in caplog.text
    assert kept_files(place.folder) == []


@pytest.mark.usefixtures("impatient")
def test_kept_epoch_of_a_trial_that_went_on_elsewhere_is_refused(
    place: Place, toy_search: Search, lock_at_first_report: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SearchCutOffError):
        toy_search(trials=1)
    lock_at_first_report.close()
    study, lease = taken_over_elsewhere(place)
    study.report(lease, 1, 0.75)
    study.tell(lease, TrialState.COMPLETE, value=0.75)
    outcome = toy_search(trials=2)
    assert dict(outcome.study.trials()[0].reports) == {1: 0.75}
    assert "trial=0 the result kept in" in caplog.text
    assert "is not needed: the trial is complete" in caplog.text
    assert kept_files(place.folder) == []


def test_database_file_that_is_removed_ends_the_search(place: Place, toy_search: Search) -> None:
    file = place.folder / "studies.db"
    with pytest.raises(SearchCutOffError, match="was removed or replaced while it was in use") as raised:
        toy_search(trials=3, observer=Saboteur(TrialEnded, file.unlink))
    assert raised.value.exit_code == 1
    assert not file.exists(), "nothing is made in its place"
    outcome = toy_search(trials=3, study="anew")
    assert outcome.exit_code == 0
    assert [trial.state for trial in place.trials("anew")] == [TrialState.COMPLETE] * 3


@pytest.mark.usefixtures("impatient")
def test_full_disk_of_the_database_ends_the_search_and_it_goes_on_after(
    place: Place, toy_search: Search, small_disk: SmallDisk
) -> None:
    storage = f"sqlite:///{small_disk.folder}/studies.db"
    more = {"storage": storage, "artifacts": str(place.folder / "artifacts"), "trials": 40}
    with pytest.raises(SearchCutOffError, match="the disk is full") as raised:
        toy_search(**more, observer=Saboteur(TrialEnded, small_disk.fill, number=3))
    assert raised.value.exit_code == 1
    with closing(sqlite3.connect(small_disk.folder / "studies.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    small_disk.make_room()
    outcome = toy_search(**more)
    assert outcome.exit_code == 0
    trials = outcome.study.trials()
    assert [(trial.number, trial.losses) for trial in trials] == [(number, 0) for number in range(40)]
    for trial in trials:
        check_whole(trial, epochs=4)


@pytest.mark.chaos
def test_checkpoint_whose_report_was_never_stored_does_no_harm(place: Place) -> None:
    """The process is killed after the file of an epoch was written, and before the database knows of it."""
    with place.search(space="slow_toy", trials=1) as search:
        trial = place.wait_for_epoch(0, 2)
        with foreign_lock(place.folder / "studies.db"):
            written = f"trial-00000/attempt-1/epoch-{trial.last_epoch + 1:04d}.json"
            until(lambda: list((place.folder / "artifacts").glob(f"*/{written}")), 10.0, "the next checkpoint's file")
            search.send(signal.SIGKILL)
            search.ended()
    (killed,) = place.trials()
    with place.search(space="slow_toy", trials=1) as search:
        ended = done(search)
    (trial,) = place.trials()
    check_whole(trial)
    first = [epoch for epoch, attempt in attempts_of_epochs(place, trial) if attempt == 1]
    assert first == list(range(1, killed.last_epoch + 1))
    assert "Traceback" not in ended.err
