"""Searches on a cluster whose machines die and join, and which other drivers use at the same time."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from studies.trial import Trial, TrialState
from tests.helpers.commands import REPOSITORY, Ended, environment_of, until
from tests.helpers.homes import Home
from tests.helpers.machines import OPEN_CLUSTER, Machines, machines
from tests.helpers.resting_driver import SAYS

pytestmark = [pytest.mark.ray, pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(240)]

START_S = 90.0
"""How long a search may take until its trials train, on a busy machine."""
ELSEWHERE_S = 60.0
"""How soon a trial goes on after the loss of its machine."""
REFUSED_S = 30.0


@pytest.fixture
def three() -> Iterator[Machines]:
    """Three machines that hold one trial of two CPUs each."""
    with machines(2, 2, 2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def small() -> Iterator[Machines]:
    """A head without CPUs and two machines of one CPU."""
    with machines(0, 1, 1) as cluster:
        yield cluster


def home_on(cluster: Machines, folder: Path) -> Home:
    return Home(folder, cluster.address, **OPEN_CLUSTER)


def check_all_complete(home: Home, ended: Ended, count: int) -> tuple[Trial, ...]:
    assert ended.code == 0, ended
    trials = home.trials()
    assert [(trial.number, trial.state) for trial in trials] == [(n, TrialState.COMPLETE) for n in range(count)]
    return trials


def test_trial_of_a_machine_that_dies_goes_on_elsewhere_and_the_others_as_if_nothing_was(
    three: Machines, tmp_path: Path
) -> None:
    home = home_on(three, tmp_path)
    slow = ("--space", "tests.helpers.slow_toy", "--epochs", 40, "--trials", 2, "--concurrency", 2)
    with home.search(*slow, "--procs-per-trial", 2, "--cpus-per-trial", 2) as command:
        until(lambda: len(home.running_at(2)) == 2 or command.process.poll() is not None, START_S, "two trials")
        victim = next(node for node in three.nodes[1:] if three.ranks_on(node))
        three.kill(victim)
        began = time.monotonic()
        until(lambda: [trial for trial in home.running_at(2) if trial.attempt == 2], ELSEWHERE_S, "its next attempt")
        (moved,) = [trial for trial in home.trials() if trial.attempt == 2]
        until(lambda: home.trials()[moved.number].last_epoch > moved.last_epoch, ELSEWHERE_S, "its next epoch")
        assert time.monotonic() - began < ELSEWHERE_S
        print(f"\ngone on after {time.monotonic() - began:.1f} s")
        ended = command.ended()
    trials = check_all_complete(home, ended, 2)
    assert [(t.attempt, t.losses) for t in trials] == [(2, 1) if t.number == moved.number else (1, 0) for t in trials]
    attempts = home.epochs_of(trials[moved.number])
    assert [epoch for epoch, _ in attempts] == list(range(1, 41)), "no epoch is missing"
    assert len([attempt for _, attempt in attempts if attempt == 1]) >= 2, "it went on from its checkpoint"


def test_machine_that_joins_is_used(three: Machines, tmp_path: Path) -> None:
    home = home_on(three, tmp_path)
    slow = ("--space", "tests.helpers.slow_toy", "--epochs", 30, "--trials", 6)
    with home.search(*slow, "--procs-per-trial", 2, "--cpus-per-trial", 2) as command:
        until(lambda: len(home.running_at(1)) == 3, START_S, "three trials")
        three.add(2)
        until(lambda: len(home.running_at(1)) == 4, ELSEWHERE_S, "a trial on the new machine")
        ended = command.ended()
    assert {trial.attempt for trial in check_all_complete(home, ended, 6)} == {1}


@contextmanager
def resting_driver(cluster: Machines, folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """A driver whose warm group rests on one of the machines."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.helpers.resting_driver", cluster.address, str(folder)],
        cwd=REPOSITORY,
        env={**environment_of(folder, **OPEN_CLUSTER), "PYTHONWARNINGS": "ignore"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as driver:
        try:
            yield driver
        finally:
            driver.kill()


def said(driver: "subprocess.Popen[str]") -> str:
    assert driver.stdout is not None
    return next(line for line in driver.stdout if line.startswith(SAYS)).removeprefix(SAYS).strip()


def go_on(driver: "subprocess.Popen[str]") -> None:
    assert driver.stdin is not None
    driver.stdin.write("\n")
    driver.stdin.flush()


@pytest.mark.parametrize("is_known", [False, True], ids=["before-it-is-known", "when-it-is-known"])
def test_machine_lost_while_its_group_rests_costs_no_trial(tmp_path: Path, is_known: bool) -> None:
    with machines(0, 2, 2) as cluster, resting_driver(cluster, tmp_path) as driver:
        assert said(driver) == "resting"
        cluster.kill(next(node for node in cluster.nodes if cluster.ranks_on(node)))
        if is_known:
            until(lambda: cluster.known_alive() == 2, ELSEWHERE_S, "Ray to miss the machine")
        go_on(driver)
        assert said(driver) == "completed"


def test_resting_group_is_given_up_when_another_driver_waits(tmp_path: Path) -> None:
    with machines(0, 2) as cluster, resting_driver(cluster, tmp_path) as driver:
        assert said(driver) == "resting"
        home = home_on(cluster, tmp_path)
        toy = ("--space", "tests.helpers.toy", "--epochs", 2, "--trials", 2)
        with home.search(*toy, "--procs-per-trial", 2, "--cpus-per-trial", 2) as command:
            check_all_complete(home, command.ended(START_S), 2)
        go_on(driver)
        assert said(driver) == "completed"


def test_two_drivers_share_a_cluster_and_a_budget(three: Machines, tmp_path: Path) -> None:
    home = home_on(three, tmp_path)
    toy = ("--space", "tests.helpers.slow_toy", "--epochs", 3, "--trials", 12, "--procs-per-trial", 2)
    with home.search(*toy, "--cpus-per-trial", 2) as one, home.search(*toy, "--cpus-per-trial", 2) as other:
        first, second = one.ended(180.0), other.ended(180.0)
    assert second.code == 0, second
    trials = check_all_complete(home, first, 12)
    assert {trial.attempt for trial in trials} == {1}
    assert len({trial.configuration["x"] for trial in trials}) == 12


TOY = ("--space", "tests.helpers.toy", "--epochs", 2, "--trials", 2)


def refusal(home: Home, *more: str | int, within_s: float = REFUSED_S) -> str:
    with home.search(*TOY, *more) as command:
        ended = command.ended()
    assert ended.code == 2, ended
    assert "Traceback" not in ended.err
    assert ended.seconds < within_s
    assert not home.trials(), "nothing is left behind"
    return ended.err


@pytest.mark.parametrize(
    "wish, words",
    [
        (("--cpus-per-trial", 1000), "a trial needs 1000 CPUs, and the cluster has 2 CPUs"),
        (("--gpus-per-trial", 9, "--procs-per-trial", 9), "a trial needs 9 GPUs, and the cluster has 0 GPUs"),
        (("--procs-per-trial", 2, "--cpus-per-trial", 2), "no single machine has them"),
    ],
    ids=["cpus", "gpus", "one-machine"],
)
def test_what_never_fits_is_refused_soon_with_the_numbers(
    small: Machines, tmp_path: Path, wish: tuple[str | int, ...], words: str
) -> None:
    assert words in refusal(home_on(small, tmp_path), *wish)


def test_ranks_on_two_machines_when_that_is_allowed(small: Machines, tmp_path: Path) -> None:
    home = home_on(small, tmp_path)
    with home.search(*TOY, "--procs-per-trial", 2, "--cpus-per-trial", 2, "--spread") as command:
        trials = check_all_complete(home, command.ended(), 2)
    assert [trial.attributes["world_size"] for trial in trials] == [2, 2]


def test_waiting_for_machines_in_vain_is_refused_after_that_time(small: Machines, tmp_path: Path) -> None:
    words = refusal(home_on(small, tmp_path), "--cpus-per-trial", 4, "--wait-for-nodes", 5, within_s=REFUSED_S + 5)
    assert "a trial needs 4 CPUs, and the cluster has 2 CPUs after 5 s" in words


def test_machine_that_was_waited_for_serves(tmp_path: Path) -> None:
    with machines(0, 1) as cluster:
        home = home_on(cluster, tmp_path)
        with home.search(*TOY, "--cpus-per-trial", 4, "--wait-for-nodes", 100) as command:
            until(lambda: "waiting 100 s for more machines" in command.err, START_S, "the beginning of the wait")
            cluster.add(4)
            ended = command.ended(60.0)
        check_all_complete(home, ended, 2)
