"""The Ray executor on a private cluster: worker groups, faults, and what is left behind."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray
from ray.util.placement_group import placement_group_table

from automl.executors.base import Failed, Finished, Reported
from automl.executors.ray import group
from automl.executors.ray.cluster import ClusterError, Node, cpus_per_rank, slots_for
from automl.executors.ray.executor import RayExecutor
from tests.contracts.executor_contract import ExecutorContract, end_of, epochs, run_to_end, toy_task
from trainers.reporting import Decision

pytestmark = pytest.mark.ray
TOY = "tests.helpers.toy:ToyTrainer"


def executor_with(ranks: int, concurrency: int = 1) -> RayExecutor:
    return RayExecutor(TOY, "digits", ranks=ranks, concurrency=concurrency)


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
    executor = executor_with(2)
    run_to_end(executor, executor.submit(toy_task(tmp_path)))
    pids = processes_of(executor)
    assert len(pids) == 2
    executor.close()
    _, alive = psutil.wait_procs([psutil.Process(p) for p in pids if psutil.pid_exists(p)], timeout=10)
    assert not alive
    assert [info["state"] for info in placement_group_table().values() if info["state"] != "REMOVED"] == []


def test_ray_group_without_a_place_says_what_it_waits_for(
    ray_cluster: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(group, "WAITS_S", 0.0)
    shape = group.GroupShape(ranks=2, cpus_per_rank=64.0, gpus_per_rank=0, timeout_s=60.0)
    waiting = group.WorkerGroup(shape, TOY, ray.put("digits"))
    waiting.warn_when_waiting()
    waiting.warn_when_waiting()
    waiting.close()
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        "a trial waits for a machine with room for 2 times 64 CPUs and 0 GPUs"
    ]


def test_ray_group_with_a_place_says_nothing(
    ray_cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with executor_with(1) as executor:
        run_to_end(executor, executor.submit(toy_task(tmp_path)))
        for placed in executor._groups:
            monkeypatch.setattr(placed, "_warn_at", 0.0)
        run_to_end(executor, executor.submit(toy_task(tmp_path)))
    assert not caplog.records


def test_slots_are_counted_machine_by_machine() -> None:
    two = [Node(cpus=3, gpus=1), Node(cpus=2, gpus=4)]
    assert slots_for(two, ranks=2, gpus=0) == 2
    assert slots_for(two, ranks=2, gpus=2) == 2
    assert slots_for([Node(cpus=1, gpus=0)], ranks=4, gpus=0) == 1
    with pytest.raises(ClusterError, match="8 GPUs on one machine, and the largest machine has 4"):
        slots_for(two, ranks=8, gpus=8)


@pytest.mark.parametrize(
    "cpus, slots, ranks, share",
    [
        ((2, 2), 1, 1, 2.0), ((2, 2), 2, 1, 2.0), ((2, 2), 1, 2, 1.0), ((2, 10), 2, 1, 5.0), ((4, 4, 4), 2, 3, 1.0),
        ((2,), 1, 4, 0.5), ((2,), 3, 1, 0.6666), ((8,), 1, 3, 2.0), ((16,), 4, 2, 2.0),
    ],
)  # fmt: skip
def test_cpus_of_a_rank_fit_one_machine(cpus: tuple[int, ...], slots: int, ranks: int, share: float) -> None:
    assert cpus_per_rank([Node(cpus=count, gpus=0) for count in cpus], slots, ranks) == share


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
