"""Six searches of one study that are killed, stopped and cut off at random: nothing is lost, and nothing done twice."""

import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import select

from studies.errors import StorageError, StudyNotFoundError
from studies.schema.optuna_tables import intermediate_values
from studies.schema.tables import automl_reports
from studies.storage import Storage
from studies.trial import Trial, TrialState
from tests.helpers.commands import environment_of, until
from tests.helpers.postgres import PostgresServer, stoppable_postgres
from tests.helpers.searches import ForkedSearch
from tests.helpers.toy import loss_after

pytestmark = [pytest.mark.slow, pytest.mark.chaos, pytest.mark.timeout(240)]

PROCESSES = 6
TRIALS = 60
EPOCHS = 16
LEASE_S = 3.0
"""Short, so that the trials of a stopped process are taken over within a round."""
MAX_RETRIES = 2
SERVER_REST_S = 20.0
END_S = 120.0


@dataclass(kw_only=True)
class Crowd:
    """People who keep six searches of one study running, whatever happens to them."""

    storage: str
    folder: Path
    stack: ExitStack
    rng: random.Random
    members: list[ForkedSearch] = field(default_factory=list)
    interrupted: set[int] = field(default_factory=set)
    is_done: bool = False

    def fill_up(self) -> None:
        """Start a search in the place of each that was killed, or found no database when it began."""
        for member in self.members:
            assert member.code in (None, 0, -signal.SIGKILL) or "Connection refused" in member.err, member.ended()
        self.is_done = self.is_done or any(member.code == 0 for member in self.members)
        self.members = [member for member in self.members if member.code is None]
        if not self.is_done:
            self.members += [self._start() for _ in range(PROCESSES - len(self.members))]

    def kill(self) -> None:
        """Kill a search, and note which trials it leaves behind."""
        member = self.rng.choice(self.members)
        member.send(signal.SIGKILL)
        member.ended()
        self.interrupted |= {trial.number for trial in self.running() if f"/{member.pid}/" in str(trial.owner)}

    def stop(self) -> None:
        self.rng.choice(self.members).send(signal.SIGSTOP)

    def go_on(self) -> None:
        stopped = [member for member in self.members if member.is_stopped and member.code is None]
        for member in stopped[:1]:
            member.send(signal.SIGCONT)

    def running(self) -> list[Trial]:
        """What runs, as far as the database can be asked."""
        try:
            with Storage(self.storage, patience_s=1.0) as storage:
                return list(storage.open_study("shared").trials([TrialState.RUNNING]))
        except StorageError:
            return []

    def wait_for_first_trials(self) -> None:
        def has_begun() -> bool:
            try:
                return len(Storage(self.storage).open_study("shared").trials()) >= PROCESSES
            except StudyNotFoundError:
                return False

        until(has_begun, END_S, "the first trials")

    def end(self) -> None:
        """Leave them alone until the study is done."""
        for member in self.members:
            if member.is_stopped and member.code is None:
                member.send(signal.SIGCONT)
        self.fill_up()
        for member in self.members:
            ended = member.ended(END_S)
            assert ended.code == 0, ended

    def _start(self) -> ForkedSearch:
        search = ForkedSearch(
            "search", "--space", "tests.helpers.steady_toy", "--storage", self.storage,
            "--artifacts", self.folder / "artifacts", "--study", "shared", "--metric", "loss", "--epochs", EPOCHS,
            "--trials", TRIALS, "--sampler", "random", "--pruner", "none", "--executor", "inline", "--quiet",
            "--max-retries", MAX_RETRIES, folder=self.folder, environment=environment_of(self.folder), lease_s=LEASE_S,
        )  # fmt: skip
        return self.stack.enter_context(search)


@contextmanager
def crowd_on(storage: str, folder: Path, seed: int) -> Iterator[Crowd]:
    """Six searches at work."""
    with ExitStack() as stack:
        crowd = Crowd(storage=storage, folder=folder, stack=stack, rng=random.Random(seed))
        crowd.fill_up()
        crowd.wait_for_first_trials()
        yield crowd


def trouble(crowd: Crowd, faults: Sequence[Callable[[], None]], count: int) -> None:
    """Let faults happen one after the other, with pauses in between."""
    for _ in range(count):
        # The pauses are part of what is tested: faults meet the searches at every point of their work.
        time.sleep(crowd.rng.uniform(0.1, 0.8))
        crowd.fill_up()
        if crowd.is_done:
            return
        crowd.rng.choice(faults)()


def check_study(storage: str, interrupted: set[int]) -> None:
    """Every trial has ended once and is whole."""
    with Storage(storage) as opened:
        trials = opened.open_study("shared").trials()
        with opened.engine.connect() as connection:
            steps = connection.execute(select(intermediate_values.c.trial_id, intermediate_values.c.step)).all()
            epochs = connection.execute(select(automl_reports.c.trial_id, automl_reports.c.epoch)).all()
    assert sorted(map(tuple, steps)) == sorted(map(tuple, epochs)), "both tables hold each epoch once"
    assert [trial.number for trial in trials] == list(range(TRIALS))
    assert len({trial.configuration["x"] for trial in trials}) == TRIALS
    for trial in trials:
        check_trial(trial)
    assert interrupted, "nothing has happened"
    assert interrupted <= {trial.number for trial in trials if trial.attempt > 1}


def check_trial(trial: Trial) -> None:
    x = float(str(trial.configuration["x"]))
    curve = {epoch: loss_after(epoch, x) for epoch in range(1, EPOCHS + 1)}
    assert trial.attempt == trial.losses + 1, "it is started anew when it was lost, and only then"
    if trial.state is TrialState.FAILED:
        assert (trial.cause, trial.losses) == ("lost", MAX_RETRIES + 1)
        assert dict(trial.reports).items() <= curve.items()
    else:
        assert trial.state is TrialState.COMPLETE
        assert trial.losses <= MAX_RETRIES
        assert (dict(trial.reports), trial.value) == (curve, min(curve.values()))


@pytest.mark.postgres
@pytest.mark.parametrize("seed", range(3))
def test_searches_on_a_server_that_are_killed_and_cut_off_lose_nothing(
    server: PostgresServer, tmp_path: Path, seed: int
) -> None:
    storage = schema_on(server)

    def cut_one() -> None:
        cut_connections(server, limit=1)

    def cut_all() -> None:
        cut_connections(server, limit=100)

    with crowd_on(storage, tmp_path, seed) as crowd:
        faults = (crowd.kill, crowd.kill, crowd.stop, crowd.go_on, cut_one, cut_all)
        trouble(crowd, faults, 14)
        with resting(server):
            crowd.stop()
            crowd.kill()
            time.sleep(SERVER_REST_S)
        trouble(crowd, faults, 10)
        crowd.end()
    check_study(storage, crowd.interrupted)


@pytest.mark.parametrize("seed", range(2))
def test_searches_on_sqlite_that_are_killed_and_stopped_lose_nothing(tmp_path: Path, seed: int) -> None:
    storage = f"sqlite:///{tmp_path}/studies.db"
    with crowd_on(storage, tmp_path, seed) as crowd:
        trouble(crowd, (crowd.kill, crowd.kill, crowd.stop, crowd.go_on), 24)
        crowd.end()
    check_study(storage, crowd.interrupted)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with stoppable_postgres() as server:
        yield server


@contextmanager
def resting(server: PostgresServer) -> Iterator[None]:
    server.stop()
    try:
        yield
    finally:
        server.start()


def schema_on(server: PostgresServer) -> str:
    """An empty schema, as the address of a database."""
    name = f"chaos_{time.monotonic_ns()}"
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{server.address}?options=-csearch_path%3D{name}"


def cut_connections(server: PostgresServer, *, limit: int) -> None:
    """Let the server end some of the searches' connections, whatever they do."""
    query = "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE application_name = 'automl'"
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute(f"{query} ORDER BY random() LIMIT {limit}) AS chosen".encode())
