"""How many trials fit the machines, and what is said when none does."""

import time

import pytest

from automl.executors.ray.cluster import Node
from automl.executors.ray.placement import Demand, Request, capacity, demand_for, problem


def nodes(*offers: tuple[float, float]) -> list[Node]:
    """Machines of (CPUs, GPUs), each with 16 GiB."""
    return [
        Node(id=f"n{i}", host=f"host{i}", cpus=cpus, gpus=gpus, memory=16 * 2**30)
        for i, (cpus, gpus) in enumerate(offers)
    ]


def demand(ranks: int = 1, cpus: float = 1.0, gpus: float = 0.0, memory: int = 0, spread: bool = False) -> Demand:
    return Demand(ranks=ranks, cpus=cpus, gpus=gpus, memory=memory, spread=spread)


@pytest.mark.parametrize("share, trials", [(0.15, 48), (0.25, 32), (0.5, 16), (1.0, 8), (0.1, 80), (1 / 3, 24)])
def test_shares_of_a_gpu_are_counted_card_by_card(share: float, trials: int) -> None:
    assert capacity(nodes((1000, 8)), demand(cpus=0.01, gpus=share)) == trials


def test_trials_are_counted_machine_by_machine() -> None:
    two = nodes((3, 1), (2, 4))
    assert capacity(two, demand(ranks=2)) == 2
    assert capacity(two, demand(ranks=2, cpus=0.5, gpus=1)) == 2
    assert capacity(two, demand(ranks=5)) == 0
    assert capacity(two, demand(ranks=5, spread=True)) == 1
    assert capacity(nodes((64, 0)), demand(memory=6 * 2**30)) == 2


@pytest.mark.parametrize(
    "cpus, concurrency, ranks, share",
    [
        ((2, 2), 1, 1, 2.0), ((2, 2), 2, 1, 2.0), ((2, 2), 1, 2, 1.0), ((2, 10), 2, 1, 5.0), ((4, 4, 4), 2, 3, 1.0),
        ((2,), 1, 4, 0.5), ((2,), 3, 1, 0.6666), ((8,), 1, 3, 2.0), ((16,), 4, 2, 2.0), ((2,), "auto", 1, 1.0),
        ((4,), "auto", 2, 1.0), ((3,), "auto", 2, 1.0), ((2,), "auto", 4, 0.5), ((7, 7), "auto", 2, 1.0),
    ],
)  # fmt: skip
def test_cpus_of_a_rank_fit_one_machine(
    cpus: tuple[int, ...], concurrency: int | str, ranks: int, share: float
) -> None:
    machines = nodes(*[(count, 0) for count in cpus])
    completed = demand_for(Request(ranks=ranks), machines, concurrency)  # type: ignore[arg-type]  # auto or a number
    assert completed.cpus == share
    assert capacity(machines, completed) >= (1 if concurrency == "auto" else int(concurrency))


def test_gpus_are_taken_where_a_machine_has_one_per_rank() -> None:
    assert demand_for(Request(ranks=2), nodes((8, 4)), "auto").gpus == 1.0
    assert demand_for(Request(ranks=2), nodes((8, 1), (8, 1)), "auto").gpus == 0.0
    assert demand_for(Request(ranks=2, spread=True), nodes((8, 1), (8, 1)), "auto").gpus == 1.0
    assert demand_for(Request(ranks=2, gpus=0), nodes((8, 4)), "auto").gpus == 0.0


def test_trials_on_gpus_share_the_cpus_of_the_machine() -> None:
    assert demand_for(Request(ranks=2), nodes((16, 4)), "auto").cpus == 4.0
    assert demand_for(Request(ranks=1, gpus=0.25), nodes((8, 1)), "auto").cpus == 2.0


@pytest.mark.parametrize(
    "machines, request_, words",
    [
        (nodes((8, 4)), Request(gpus=9, ranks=9), "needs 9 GPUs, and the cluster has 4 GPUs"),
        (nodes((2, 0)), Request(cpus=1000), "needs 1000 CPUs, and the cluster has 2 CPUs"),
        (nodes((2, 0)), Request(memory=64 * 2**30), "needs 64.0 GiB of memory, and the cluster has 16.0 GiB of memory"),
        (nodes((1, 0), (1, 0)), Request(ranks=2), "no single machine has them: the largest one has 1 CPU"),
        (nodes((8, 1), (2, 2)), Request(ranks=2, gpus=2, cpus=4), "at the same time"),
        ([], Request(), "needs 1 CPU, and the cluster has 0 CPUs"),
    ],
)
def test_what_can_never_fit_is_said_in_numbers(machines: list[Node], request_: Request, words: str) -> None:
    assert words in str(problem(machines, demand_for(request_, machines, "auto")))


def test_ranks_on_several_machines_are_a_persons_choice() -> None:
    two = nodes((1, 0), (1, 0))
    assert "--spread" in str(problem(two, demand_for(Request(ranks=2), two, "auto")))
    assert problem(two, demand_for(Request(ranks=2, spread=True), two, "auto")) is None
    assert problem(two, demand_for(Request(ranks=2, cpus=1), two, "auto")) is None


def test_demand_is_said_in_words() -> None:
    assert str(demand(ranks=2, gpus=1, memory=2**30)) == "2 GPUs, 2.0 GiB of memory and 2 CPUs"
    assert str(demand()) == "1 CPU"


def test_shares_for_many_machines_are_found_at_once() -> None:
    many = nodes(*[(96, 0)] * 300)
    began = time.process_time()
    assert demand_for(Request(), many, "auto").cpus == 1.0
    assert demand_for(Request(ranks=2), many, 1000).cpus == 12.0
    assert time.process_time() - began < 2.0
