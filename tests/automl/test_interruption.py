"""The whole product on Ray, interrupted in every way: what is lost, how soon it is out, and what is left behind."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import select

from studies.errors import StudyNotFoundError
from studies.schema.tables import automl_reports
from studies.storage import Storage
from studies.study import Study
from studies.trial import Trial, TrialState
from tests.helpers.commands import Command, Ended, environment_of, until

pytestmark = [pytest.mark.ray, pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(240)]

START_S = 90.0
"""How long a search may take until trials train: Ray, torch and the workers start on a busy machine."""
LOAD_S = 3.0
"""How much longer everything may take than promised, because other tests may hold the CPUs."""
NAME = "sought"
EPOCHS = 6
TRIALS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A person's folders: where the search was started, and another one."""

    folder: Path
    elsewhere: Path

    @property
    def database(self) -> Path:
        return self.folder / "automl-runs" / "studies.db"

    def study(self) -> Study:
        return Storage(f"sqlite:///{self.database}").open_study(NAME)

    def trials(self) -> tuple[Trial, ...]:
        try:
            return self.study().trials()
        except StudyNotFoundError:
            return ()  # not begun yet

    def command(self, *arguments: str | int, folder: Path | None = None) -> Command:
        return Command(*arguments, folder=folder or self.folder, environment=environment_of(self.folder))

    @contextmanager
    def searching(self, *more: str | int) -> Iterator[Command]:
        """A search for slow toys whose running trials have all reached epoch 2, and at least two of them run."""
        arguments = (
            "search", "--space", "tests.helpers.slow_toy", "--study", NAME, "--metric", "loss", "--epochs", EPOCHS,
            "--trials", TRIALS, "--concurrency", 2, "--sampler", "random", "--pruner", "none", *more,
        )  # fmt: skip
        with self.command(*arguments) as command:
            until(
                lambda: self._are_at_epoch_2() or command.process.poll() is not None, START_S, "two trials at epoch 2"
            )
            assert command.process.poll() is None, command.ended()
            yield command

    def _are_at_epoch_2(self) -> bool:
        running = [trial for trial in self.trials() if trial.state is TrialState.RUNNING]
        return len(running) == 2 and all(trial.last_epoch >= 2 for trial in running)

    def resumed(self) -> Ended:
        """Go on by the study's name alone, from another folder."""
        with self.command("resume", NAME, folder=self.elsewhere) as command:
            return command.ended()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(folder=tmp_path / "home", elsewhere=tmp_path / "elsewhere")
    home.folder.mkdir()
    home.elsewhere.mkdir()
    return home


def check_completed(home: Home, ended: Ended, interrupted: set[int]) -> None:
    """Every trial is complete and whole, and the interrupted ones went on from where they were."""
    assert ended.code == 0, ended
    assert not any(home.elsewhere.iterdir())
    trials = home.trials()
    assert [(trial.number, trial.state) for trial in trials] == [(n, TrialState.COMPLETE) for n in range(TRIALS)]
    assert {trial.number for trial in trials if trial.attempt == 2} == interrupted
    for trial in trials:
        assert list(trial.reports) == list(range(1, EPOCHS + 1))
        attempts = attempts_of_epochs(home, trial)
        assert [epoch for epoch, _ in attempts] == list(range(1, EPOCHS + 1)), "one value for each epoch"
        if trial.number in interrupted:
            first = [epoch for epoch, attempt in attempts if attempt == 1]
            assert len(first) >= 2, "the epochs before the checkpoint were not trained again"
            assert f"trial={trial.number}] resumed epoch={first[-1]} " in ended.err


def attempts_of_epochs(home: Home, trial: Trial) -> list[tuple[int, int]]:
    table = automl_reports.c
    query = select(table.epoch, table.attempt).where(table.trial_id == trial.id).order_by(table.epoch)
    with Storage(f"sqlite:///{home.database}") as storage, storage.engine.connect() as connection:
        return [(row.epoch, row.attempt) for row in connection.execute(query)]


def test_killed_driver_leaves_no_process_and_its_study_goes_on_from_the_checkpoints(home: Home) -> None:
    with home.searching() as command:
        interrupted = {trial.number for trial in home.trials() if trial.state is TrialState.RUNNING}
        command.send(signal.SIGKILL)
        assert command.ended().code == -signal.SIGKILL
        until(lambda: not command.family(), 10.0 + LOAD_S, "the end of the dead driver's processes")
    check_completed(home, home.resumed(), interrupted)


def once(number: signal.Signals, *, to_group: bool = False) -> Callable[[Command], None]:
    return lambda command: command.send(number, to_group=to_group)


def twice(number: signal.Signals, *, to_group: bool = False) -> Callable[[Command], None]:
    def interrupt(command: Command) -> None:
        command.send(number, to_group=to_group)
        # Two signals at the same moment would be one for the kernel.
        time.sleep(0.3)
        command.send(number, to_group=to_group)

    return interrupt


def to_every_process(number: signal.Signals) -> Callable[[Command], None]:
    """What systemd does to a service that it stops, and SLURM to a job that is cancelled."""

    def interrupt(command: Command) -> None:
        for process in command.family():
            process.send_signal(number)

    return interrupt


@pytest.mark.parametrize(
    "interrupt, code, out_within_s",
    [
        pytest.param(once(signal.SIGINT), 130, 10.0, id="SIGINT"),
        pytest.param(once(signal.SIGTERM), 143, 10.0, id="SIGTERM"),
        pytest.param(once(signal.SIGTERM, to_group=True), 143, 10.0, id="timeout"),
        pytest.param(to_every_process(signal.SIGTERM), 143, 10.0, id="service-stop"),
        pytest.param(once(signal.SIGINT, to_group=True), 130, 10.0, id="Ctrl-C"),
        pytest.param(twice(signal.SIGINT), 130, 3.0, id="SIGINT-twice"),
        pytest.param(twice(signal.SIGINT, to_group=True), 130, 3.0, id="Ctrl-C-twice"),
    ],
)
def test_interrupted_search_pauses_its_trials_and_leaves_nothing_behind(
    home: Home, interrupt: Callable[[Command], None], code: int, out_within_s: float
) -> None:
    with home.searching() as command:
        began = time.monotonic()
        interrupt(command)
        ended = command.ended(timeout_s=60.0)
        took_s = time.monotonic() - began
        assert ended.code == code, ended
        assert took_s < out_within_s + LOAD_S
        until(lambda: not command.family(), 1.0 + LOAD_S, "the end of all processes")
    assert "Traceback" not in ended.err
    assert f"go on with: automl resume {NAME}" in ended.out
    states = [trial.state for trial in home.trials()]
    assert TrialState.RUNNING not in states
    interrupted = {trial.number for trial in home.trials() if trial.state is TrialState.PAUSED}
    assert interrupted
    check_completed(home, home.resumed(), interrupted)


@pytest.mark.parametrize(
    "interrupt, code",
    [
        pytest.param(once(signal.SIGTERM), 143, id="SIGTERM"),
        pytest.param(once(signal.SIGTERM, to_group=True), 143, id="timeout"),
        pytest.param(once(signal.SIGINT, to_group=True), 130, id="Ctrl-C"),
    ],
)
def test_interrupted_while_ray_starts_ends_in_order(
    home: Home, interrupt: Callable[[Command], None], code: int
) -> None:
    arguments = ("search", "--space", "tests.helpers.slow_toy", "--study", NAME, "--metric", "loss")
    with home.command(*arguments) as command:
        until(lambda: is_starting_ray(command) or command.process.poll() is not None, START_S, "Ray's first server")
        interrupt(command)
        ended = command.ended(timeout_s=60.0)
        until(lambda: not command.family(), 1.0 + LOAD_S, "the end of all processes")
    assert ended.code == code, ended
    assert "Traceback" not in ended.err
    assert not any(trial.state is TrialState.RUNNING for trial in home.trials())


def is_starting_ray(command: Command) -> bool:
    return any(process.name() == "gcs_server" for process in command.family())


def test_killed_rank_is_replaced_and_its_trial_goes_on_from_the_checkpoint(home: Home) -> None:
    with home.searching("--procs-per-trial", 2) as command:
        ranks = [process for process in command.family() if process.name() == "ray::Rank"]
        assert len(ranks) == 4
        ranks[-1].send_signal(signal.SIGKILL)
        ended = command.ended()
        assert not command.family()
    retried = {trial.number for trial in home.trials() if trial.attempt == 2}
    assert len(retried) == 1
    assert "trying again" in ended.err
    check_completed(home, ended, retried)


def run(home: Home, *arguments: str | int) -> Ended:
    with home.command("search", "--study", NAME, "--metric", "loss", *arguments) as command:
        return command.ended()


def test_two_ranks_prune_the_same_trials_at_the_same_epochs_as_one(tmp_path: Path) -> None:
    def prunings(ranks: int) -> list[tuple[TrialState, int, float | None]]:
        home = Home(folder=tmp_path / str(ranks), elsewhere=tmp_path)
        home.folder.mkdir()
        ended = run(
            home, "--space", "tests.helpers.toy", "--sampler", "random", "--pruner", "median", "--trials", 20,
            "--epochs", 6, "--seed", 7, "--concurrency", 1, "--procs-per-trial", ranks,
        )  # fmt: skip
        assert ended.code == 0, ended
        trials = home.trials()
        assert {trial.attributes["world_size"] for trial in trials if trial.state is TrialState.COMPLETE} == {ranks}
        return [(trial.state, trial.last_epoch, trial.value) for trial in trials]

    alone, together = prunings(1), prunings(2)
    assert alone == together
    assert len(alone) == 20
    assert 3 < sum(state is TrialState.PRUNED for state, _, _ in alone) < 18


def test_all_trials_pruned_on_two_ranks_end_with_3(home: Home) -> None:
    ended = run(
        home, "--space", "tests.helpers.toy", "--pruner", "tests.helpers.pruners:StopAtOnce",
        "--trials", 6, "--procs-per-trial", 2, "--concurrency", 1,
    )  # fmt: skip
    assert ended.code == 3, ended
    assert [(trial.state, trial.last_epoch) for trial in home.trials()] == [(TrialState.PRUNED, 1)] * 6
    assert "6 pruned" in ended.out
