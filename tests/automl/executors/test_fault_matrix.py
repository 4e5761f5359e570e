"""Every fault on every rank, in the first epoch and later: named, contained, and gone before the next trial."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray
from ray.util.placement_group import placement_group_table

from automl.executors.base import Failed, Finished, Reported
from automl.executors.ray.executor import RayExecutor
from automl.executors.ray.placement import Request
from automl.executors.ray.watch import Limits
from automl.worker import Failure
from tests.contracts.executor_contract import end_of, epochs, run_to_end, toy_task
from tests.helpers.commands import until
from tests.helpers.memory_limits import memory_limit_for
from tests.helpers.toy import ORPHAN
from trainers.reporting import Decision

pytestmark = [pytest.mark.ray, pytest.mark.timeout(120)]

TOY = "tests.helpers.toy:ToyTrainer"
RANKS = 2
SOON_S = 15.0
TRIAL_S, STALL_S = 5.0, 8.0
HANGS_S = 10.0
"""How long after its limit a trial that hangs may be reported."""
MIB = 2**20

BOTH = pytest.mark.parametrize("who, rank", [("0", 0), ("last", 1)], ids=["rank-0", "rank-1"])
EPOCHS = pytest.mark.parametrize("bad_epoch", [1, 3], ids=["first-epoch", "later"])


@contextmanager
def working(limits: Limits | None = None, ranks: int = RANKS) -> Iterator[RayExecutor]:
    """An executor; at its end its processes and reservations must be gone."""
    executor = RayExecutor(TOY, "digits", request=Request(ranks=ranks, cpus=1), concurrency=1, limits=limits)
    with executor:
        yield executor
        pids, own = processes_of(executor), {group.reservation.id for group in executor._groups}
    until(lambda: not living_ranks() & set(pids), 10.0, "the end of all ranks")
    assert not reservations() & own


@pytest.fixture(scope="module")
def pair(ray_cluster: None) -> Iterator[RayExecutor]:
    with working() as executor:
        yield executor


@pytest.fixture(scope="module")
def hurried(ray_cluster: None) -> Iterator[RayExecutor]:
    """A trial may take five seconds."""
    with working(Limits(trial_s=TRIAL_S)) as executor:
        yield executor


@pytest.fixture(scope="module")
def watchful(ray_cluster: None) -> Iterator[RayExecutor]:
    """A trial may stand still for eight seconds."""
    with working(Limits(stall_s=STALL_S)) as executor:
        yield executor


def reservations() -> set[str]:
    return {name for name, entry in placement_group_table().items() if entry["state"] != "REMOVED"}


def living_ranks() -> set[int]:
    """The processes of all ranks on this machine that came of these tests."""
    return {process.pid for process in psutil.Process().children(recursive=True) if name_of(process) == "ray::Rank"}


def name_of(process: psutil.Process) -> str:
    try:
        return "" if process.status() == psutil.STATUS_ZOMBIE else process.name()
    except psutil.NoSuchProcess:
        return ""


def orphans() -> list[psutil.Process]:
    """What toys have started, whoever their parent is now."""
    return [process for process in psutil.process_iter(["cmdline"]) if ORPHAN in (process.info["cmdline"] or ())]


def processes_of(executor: RayExecutor) -> list[int]:
    groups: Any = executor._groups
    return [pid for group in groups for pid in ray.get([rank.process.remote() for rank in group._ranks])]


def warm(executor: RayExecutor, folder: Path) -> list[int]:
    """Have a group at work, so that what follows is the fault's time and not that of a start; its processes."""
    check_next_completes(executor, folder)
    return processes_of(executor)


def check_next_completes(executor: RayExecutor, folder: Path) -> None:
    following = executor.submit(toy_task(folder, name="following"))
    events = run_to_end(executor, following)
    assert isinstance(end_of(events, following), Finished)
    assert epochs(events, following) == [1, 2, 3]


def fault_of(
    executor: RayExecutor,
    folder: Path,
    mood: str,
    *,
    bad_epoch: int = 2,
    epoch_s: float = 0.0,
    within_s: float = SOON_S,
    at_epoch: Callable[[int], None] = lambda epoch: None,
) -> Failure:
    """Let a trial misbehave, or do something to it after an epoch; return what is said of it."""

    def decide(event: Reported) -> Decision:
        at_epoch(event.report.epoch)
        return Decision.CONTINUE

    began = time.monotonic()
    job = executor.submit(toy_task(folder, mood=mood, bad_epoch=float(bad_epoch), epochs=1000, epoch_s=epoch_s))
    events = run_to_end(executor, job, decide=decide)
    took_s = time.monotonic() - began
    end = end_of(events, job)
    assert isinstance(end, Failed), end
    print(f"\n{mood} {bad_epoch}: {took_s:.1f} s {end.failure}")
    assert took_s < within_s
    assert end.failure.host == socket.gethostname()
    if mood != "fine":  # rank 0 may have reported the epoch in which the other one misbehaved
        assert epochs(events, job) in (list(range(1, bad_epoch)), list(range(1, bad_epoch + 1)))
    return end.failure


def check_replaced(executor: RayExecutor, folder: Path, pids: Sequence[int]) -> None:
    """The next trial completes, and of the processes that the group had before nothing is left."""
    check_next_completes(executor, folder)
    assert not set(pids) & set(processes_of(executor))
    until(lambda: not living_ranks() & set(pids), 5.0, "the end of the ranks that failed")


@pytest.mark.slow
@BOTH
@EPOCHS
@pytest.mark.parametrize(
    "deed, cause, error",
    [
        ("raise", "user_error", "ZeroDivisionError"),
        ("exit", "lost", "ActorDiedError"),
        ("quit", "user_error", "SystemExit"),
        ("diverge", "non_finite", "NonFiniteLossError"),
    ],
)
def test_fault_of_one_rank_is_named_soon_and_the_next_trial_completes(
    pair: RayExecutor, tmp_path: Path, deed: str, cause: str, error: str, who: str, rank: int, bad_epoch: int
) -> None:
    pids = warm(pair, tmp_path)
    failure = fault_of(pair, tmp_path, f"{deed}_{who}", bad_epoch=bad_epoch)
    assert (failure.cause, failure.error, failure.rank) == (cause, error, rank)
    check_replaced(pair, tmp_path, pids)


@BOTH
@EPOCHS
def test_hang_of_one_rank_ends_at_the_limit_of_the_trial(
    hurried: RayExecutor, tmp_path: Path, who: str, rank: int, bad_epoch: int
) -> None:
    pids = warm(hurried, tmp_path)
    failure = fault_of(hurried, tmp_path, f"hang_{who}", bad_epoch=bad_epoch, within_s=TRIAL_S + HANGS_S)
    assert (failure.cause, failure.rank) == ("timeout", rank)
    assert "longer than 5 s (--trial-timeout)" in failure.message
    assert "in _hang" in failure.message
    check_replaced(hurried, tmp_path, pids)


@pytest.mark.slow
@BOTH
@EPOCHS
def test_hang_of_one_rank_is_seen_as_a_standstill(
    watchful: RayExecutor, tmp_path: Path, who: str, rank: int, bad_epoch: int
) -> None:
    pids = warm(watchful, tmp_path)
    failure = fault_of(watchful, tmp_path, f"hang_{who}", bad_epoch=bad_epoch, within_s=STALL_S + HANGS_S)
    assert (failure.cause, failure.rank) == ("timeout", rank)
    assert "(--stall-timeout); rank" in failure.message
    assert "_hang" in failure.traceback
    check_replaced(watchful, tmp_path, pids)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_stopped_rank_does_not_answer(watchful: RayExecutor, tmp_path: Path, rank: int) -> None:
    pids = warm(watchful, tmp_path)

    def stop(epoch: int) -> None:
        if epoch == 20:
            os.kill(pids[rank], signal.SIGSTOP)

    failure = fault_of(watchful, tmp_path, "fine", epoch_s=0.05, at_epoch=stop, within_s=STALL_S + HANGS_S)
    assert (failure.cause, failure.rank) == ("timeout", rank)
    assert f"rank {rank} does not answer" in failure.message
    check_replaced(watchful, tmp_path, pids)


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.parametrize("mood", ["unreadable", "unsendable"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_report_that_cannot_be_told_fails_its_trial_and_nothing_else(tmp_path: Path, mood: str, ranks: int) -> None:
    with working(ranks=ranks) as executor:
        failure = fault_of(executor, tmp_path, mood)
        assert (failure.cause, failure.rank) == ("user_error", 0)
        check_next_completes(executor, tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
def test_single_rank_that_is_stopped_does_not_answer(tmp_path: Path) -> None:
    with working(Limits(stall_s=STALL_S), ranks=1) as executor:
        pids = warm(executor, tmp_path)

        def stop(epoch: int) -> None:
            if epoch == 5:
                os.kill(pids[0], signal.SIGSTOP)

        failure = fault_of(executor, tmp_path, "fine", epoch_s=0.05, at_epoch=stop, within_s=STALL_S + HANGS_S)
        assert failure.cause == "timeout"
        assert failure.message.endswith("rank 0 does not answer")
        check_replaced(executor, tmp_path, pids)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_killed_rank_is_lost(pair: RayExecutor, tmp_path: Path, rank: int) -> None:
    pids = warm(pair, tmp_path)

    def kill(epoch: int) -> None:
        if epoch == 5:
            os.kill(pids[rank], signal.SIGKILL)

    failure = fault_of(pair, tmp_path, "fine", epoch_s=0.05, at_epoch=kill)
    assert (failure.cause, failure.rank) == ("lost", rank)
    check_replaced(pair, tmp_path, pids)


HOG = "import sys; sys.stdin.readline(); hoard = bytearray(2**30)"


@pytest.mark.slow
def test_killed_rank_is_lost_though_a_foreign_process_is_ended_for_want_of_memory(
    pair: RayExecutor, tmp_path: Path
) -> None:
    pids = warm(pair, tmp_path)

    def kill(epoch: int) -> None:
        if epoch != 5:
            return
        with subprocess.Popen([sys.executable, "-c", HOG], stdin=subprocess.PIPE, text=True) as hog:
            with memory_limit_for(hog.pid, 64 * MIB):
                hog.communicate("\n", timeout=30.0)
        assert hog.returncode == -signal.SIGKILL
        os.kill(pids[0], signal.SIGKILL)

    failure = fault_of(pair, tmp_path, "fine", epoch_s=0.05, at_epoch=kill)
    assert (failure.cause, failure.rank) == ("lost", 0)
    check_replaced(pair, tmp_path, pids)


@pytest.mark.slow
@BOTH
@EPOCHS
def test_rank_that_the_kernel_kills_for_want_of_memory_is_out_of_memory(
    pair: RayExecutor, tmp_path: Path, who: str, rank: int, bad_epoch: int
) -> None:
    pids = warm(pair, tmp_path)
    with memory_limit_for(pids[rank], 256 * MIB):
        failure = fault_of(pair, tmp_path, f"hoard_{who}", bad_epoch=bad_epoch)
    assert (failure.cause, failure.rank) == ("oom", rank)
    assert failure.is_memory_kill
    check_replaced(pair, tmp_path, pids)


@pytest.mark.slow
def test_fault_that_all_ranks_find_together_keeps_the_group(pair: RayExecutor, tmp_path: Path) -> None:
    pids = warm(pair, tmp_path)
    failure = fault_of(pair, tmp_path, "diverge_all")
    assert failure.cause == "non_finite"
    check_next_completes(pair, tmp_path)
    assert processes_of(pair) == pids


@pytest.mark.slow
@pytest.mark.parametrize("mood", ["beget_all", "beget+exit_last", "beget+exit_0", "beget+hang_0"])
def test_processes_that_a_trial_has_started_end_with_it(hurried: RayExecutor, tmp_path: Path, mood: str) -> None:
    warm(hurried, tmp_path)
    if mood == "beget_all":
        job = hurried.submit(toy_task(tmp_path, mood=mood))
        assert isinstance(end_of(run_to_end(hurried, job), job), Finished)
    else:
        assert fault_of(hurried, tmp_path, mood).cause == ("lost" if "exit" in mood else "timeout")
    until(lambda: not orphans(), 5.0, "the end of what the trial has started")
