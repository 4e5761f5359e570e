"""The Ray executor on a private cluster: worker groups, faults, and what is left behind."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray
from ray.util.placement_group import placement_group_table

from automl.errors import SearchCutOffError
from automl.executors.base import Event, Failed, Finished, Reported
from automl.executors.ray.executor import RayExecutor
from automl.executors.ray.placement import Request
from tests.contracts.executor_contract import ExecutorContract, end_of, epochs, run_to_end, toy_task
from tests.helpers.array_toy import ArrayTrainer
from trainers.data.spec import DataSpec
from trainers.reporting import Decision

pytestmark = pytest.mark.ray
TOY = "tests.helpers.toy:ToyTrainer"


def executor_with(ranks: int, concurrency: int = 1) -> RayExecutor:
    return RayExecutor(TOY, "digits", request=Request(ranks=ranks, cpus=ranks / 2), concurrency=concurrency)


@pytest.mark.usefixtures("ray_cluster")
class TestRayExecutor(ExecutorContract):
    @pytest.fixture
    def executor(self) -> Iterator[RayExecutor]:
        with executor_with(1) as executor:
            yield executor


@pytest.fixture(scope="module")
def pair(ray_cluster: None) -> Iterator[RayExecutor]:
    with executor_with(2) as executor:
        yield executor


def reservations() -> set[str]:
    return {name for name, entry in placement_group_table().items() if entry["state"] != "REMOVED"}


def processes_of(executor: RayExecutor) -> list[int]:
    groups: Any = executor._groups
    return [pid for group in groups for pid in ray.get([rank.process.remote() for rank in group._ranks])]


def test_ray_two_ranks_leave_together_when_told(pair: RayExecutor, tmp_path: Path) -> None:
    job = pair.submit(toy_task(tmp_path, epochs=9))
    events = run_to_end(pair, job, decide=lambda e: Decision.STOP if e.report.epoch == 2 else Decision.CONTINUE)
    assert epochs(events, job) == [1, 2]
    end = end_of(events, job)
    assert isinstance(end, Finished)
    assert end.outcome.outcome == "stopped"  # type: ignore[union-attr]  # a training


def test_ray_group_is_kept_from_one_trial_to_the_next(pair: RayExecutor, tmp_path: Path) -> None:
    run_to_end(pair, pair.submit(toy_task(tmp_path)))
    before = processes_of(pair)
    began = time.monotonic()
    for _ in range(5):
        run_to_end(pair, pair.submit(toy_task(tmp_path)))
    assert time.monotonic() - began < 5.0
    assert processes_of(pair) == before


@pytest.mark.parametrize(
    "mood, cause, rank", [("raise_last", "user_error", 1), ("exit_0", "lost", 0), ("exit_last", "lost", 1)]
)
def test_ray_fault_of_one_rank_is_named_and_the_next_trial_completes(
    pair: RayExecutor, tmp_path: Path, mood: str, cause: str, rank: int
) -> None:
    job = pair.submit(toy_task(tmp_path, mood=mood))
    began = time.monotonic()
    end = end_of(run_to_end(pair, job), job)
    assert time.monotonic() - began < 30.0
    assert isinstance(end, Failed)
    assert (end.failure.cause, end.failure.rank) == (cause, rank)
    following = pair.submit(toy_task(tmp_path))
    assert isinstance(end_of(run_to_end(pair, following), following), Finished)


def test_ray_killed_rank_is_lost(pair: RayExecutor, tmp_path: Path) -> None:
    job = pair.submit(toy_task(tmp_path, epochs=1000, epoch_s=0.05))
    victims: list[int] = []

    def kill_once(event: Reported) -> Decision:
        if not victims:
            victims.append(processes_of(pair)[1])
            os.kill(victims[0], signal.SIGKILL)
        return Decision.CONTINUE

    end = end_of(run_to_end(pair, job, decide=kill_once), job)
    assert isinstance(end, Failed)
    assert (end.failure.cause, end.failure.rank) == ("lost", 1)


def test_ray_closed_executor_leaves_no_process_and_no_reservation(ray_cluster: None, tmp_path: Path) -> None:
    before = reservations()
    executor = executor_with(2)
    run_to_end(executor, executor.submit(toy_task(tmp_path)))
    assert reservations() > before
    pids = processes_of(executor)
    assert len(pids) == 2
    executor.close()
    _, alive = psutil.wait_procs([psutil.Process(p) for p in pids if psutil.pid_exists(p)], timeout=10)
    assert not alive
    assert reservations() == before


def test_ray_ranks_share_the_memory_of_the_data(ray_cluster: None, tmp_path: Path) -> None:
    trainer = ArrayTrainer()
    data = trainer.load(DataSpec())
    with RayExecutor("tests.helpers.array_toy:ArrayTrainer", data, request=Request(ranks=2, cpus=1)) as executor:
        job = executor.submit(toy_task(tmp_path))
        end = end_of(run_to_end(executor, job), job)
    assert isinstance(end, Finished)
    assert end.outcome.facts["is_shared"] == [[True, float(data["images"].sum())]] * 2  # type: ignore[union-attr]  # a training


def test_ray_rank_that_dies_while_its_report_waits_is_the_one_to_blame(pair: RayExecutor, tmp_path: Path) -> None:
    job = pair.submit(toy_task(tmp_path, epochs=9))
    events: list[Event] = []
    while not any(isinstance(event, Reported) for event in events):
        events += pair.events(5.0)
    os.kill(processes_of(pair)[0], signal.SIGKILL)
    while not any(isinstance(event, Failed) for event in events):
        events += pair.events(5.0)
    end = end_of(events, job)
    assert isinstance(end, Failed)
    assert (end.failure.cause, end.failure.rank) == ("lost", 0)


def test_ray_process_that_dies_at_rest_costs_no_trial(pair: RayExecutor, tmp_path: Path) -> None:
    run_to_end(pair, pair.submit(toy_task(tmp_path)))
    victim = psutil.Process(processes_of(pair)[1])
    victim.kill()
    deadline = time.monotonic() + 20.0
    while any(group.is_warm for group in pair._groups):
        assert time.monotonic() < deadline
        pair.events(0.5)
    job = pair.submit(toy_task(tmp_path))
    assert isinstance(end_of(run_to_end(pair, job), job), Finished)


def test_ray_places_are_kept_only_while_more_is_wanted(ray_cluster: None) -> None:
    before = reservations()
    with RayExecutor(TOY, "digits", request=Request(cpus=0.5), concurrency=6) as executor:
        settle(executor, lambda: executor.slots == 1)
        executor.wants_more = False
        settle(executor, lambda: reservations() == before)
        assert executor.slots == 0
        executor.wants_more = True
        settle(executor, lambda: executor.slots == 1)
    assert reservations() == before


def test_ray_idle_place_is_given_to_a_task_that_waits(ray_cluster: None) -> None:
    @ray.remote(num_cpus=2)
    def other_work() -> str:
        return "ran"

    with RayExecutor(TOY, "digits", request=Request(cpus=2.5), concurrency=1) as executor:
        settle(executor, lambda: executor.slots == 1)
        waiting = other_work.remote()
        settle(executor, lambda: bool(ray.wait([waiting], timeout=0)[0]))
        assert ray.get(waiting) == "ran"


def test_ray_waiting_for_machines_ends_by_the_check(ray_cluster: None) -> None:
    before = reservations()

    def check() -> None:
        raise SearchCutOffError("interrupted", 130)

    with pytest.raises(SearchCutOffError, match="interrupted"):
        RayExecutor(TOY, "digits", request=Request(cpus=1000), wait_for_nodes_s=60.0, check=check)
    assert reservations() == before


def settle(executor: RayExecutor, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30.0
    while not is_so():
        assert time.monotonic() < deadline
        executor.events(0.2)


def test_ray_dead_address_is_refused_soon_with_advice() -> None:
    import subprocess
    import sys

    code = (
        "from automl.executors.ray.cluster import Cluster, ClusterError\n"
        "try: Cluster('127.0.0.1:1')\n"
        "except ClusterError as error: print(error)"
    )
    began = time.monotonic()
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout
    assert "ray start --head" in output
    assert time.monotonic() - began < 15
