"""A large network is known as a whole before its weights take memory; a small one is built as if nobody looked."""

import copy
import random
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import torch
from torch import nn

from tests.trainers.rank_pool import RankPool
from tests.trainers.training import Script, tiny_task
from trainers import device_load, large_networks
from trainers.config import TrainConfig
from trainers.data.arrays import ImageData
from trainers.device_load import CpuLoad
from trainers.distributed import Ranks
from trainers.errors import NetworkMemoryError
from trainers.estimates import MemoryEstimate, estimate_network
from trainers.failures import explain
from trainers.large_networks import build_looking_ahead, hollow
from trainers.network_memory import check_network_fits
from trainers.tasks import load_trainer
from trainers.watching import Watch

GIB = 2**30


def enormous() -> nn.Module:
    return nn.Sequential(nn.Linear(10, 200_000), nn.Linear(200_000, 200_000))


def copied_layers() -> nn.Module:
    layer = nn.Linear(1000, 1000)
    return nn.Sequential(*(copy.deepcopy(layer) for _ in range(9)), nn.Linear(10**7, 10**7))


class Looks:
    def __init__(self, error: Exception | None = None) -> None:
        self.seen: list[nn.Module] = []
        self._error = error

    def __call__(self, network: nn.Module) -> None:
        self.seen.append(network)
        if self._error is not None:
            raise self._error


@pytest.mark.parametrize("build", [enormous, copied_layers])
def test_network_that_fits_nowhere_is_seen_without_memory_and_refused(build: Callable[[], nn.Module]) -> None:
    look = Looks(NetworkMemoryError("too large"))
    with pytest.raises(NetworkMemoryError, match="too large"):
        build_looking_ahead(build, look)
    (network,) = look.seen
    assert all(weight.is_meta for weight in network.parameters())
    assert sum(weight.numel() for weight in network.parameters()) >= 4 * 10**10


def test_small_network_is_not_looked_at_and_its_constructor_runs_once() -> None:
    calls = []

    def build() -> nn.Module:
        calls.append(1)
        return nn.Sequential(nn.Linear(100, 100), nn.LazyLinear(10))

    look = Looks()
    build_looking_ahead(build, look)
    assert (len(calls), look.seen) == (1, [])


def test_looking_ahead_moves_no_random_state(monkeypatch: pytest.MonkeyPatch) -> None:
    def build() -> nn.Module:
        first = nn.Linear(8, 8)
        torch.rand(3, device="cpu")
        with torch.no_grad():
            first.weight += random.random() + np.random.rand()  # what a person's constructor may do
        return nn.Sequential(first, nn.Linear(8, 8))

    def states() -> tuple[dict[str, torch.Tensor], torch.Tensor, float, float]:
        torch.manual_seed(3)
        random.seed(3)
        np.random.seed(3)
        weights = build_looking_ahead(build, look).state_dict()
        return weights, torch.rand(3), random.random(), float(np.random.rand())

    look = Looks()
    plain = states()
    monkeypatch.setattr(large_networks, "LARGE_BYTES", 100)
    seen = states()
    assert len(look.seen) == 1
    assert all(torch.equal(plain[0][name], seen[0][name]) for name in plain[0])
    assert torch.equal(plain[1], seen[1]) and plain[2:] == seen[2:]


def test_network_that_needs_values_is_built_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    def build() -> nn.Module:
        layer = nn.Linear(8, 8)
        return layer if float(layer.weight.sum()) < 1e9 else nn.Identity()

    monkeypatch.setattr(large_networks, "LARGE_BYTES", 1)
    look = Looks()
    assert isinstance(build_looking_ahead(build, look), nn.Linear)
    assert look.seen == [] and hollow(build) is None


@pytest.mark.parametrize(
    "room, ranks, parallel, refused",
    [
        (40, 1, "auto", ""),
        (39, 1, "auto", r"needs 40\.0 GiB without any batch .*weights 10\.0 GiB, gradients 10\.0 GiB, optimizer 20\.0"),
        (39, 4, "ddp", "fsdp or pipeline over 2 ranks"),
        (10, 4, "fsdp", ""),
        (10, 4, "pipeline", ""),
        (10, 3, "fsdp", r"needs 13\.3 GiB on each of 3 ranks .* over 4 ranks"),
        (9, 16, "fsdp", r"the weights alone need 10\.0 GiB, but the cpu has 9\.0 GiB left.* use a smaller network$"),
    ],
)
def test_what_a_rank_holds_decides_and_each_builds_the_whole(
    monkeypatch: pytest.MonkeyPatch, room: int, ranks: int, parallel: str, refused: str
) -> None:
    with torch.device("meta"):
        network = nn.Linear(5 * 2**19, 1024, bias=False)
    training = TrainConfig(parallel=parallel)  # type: ignore[arg-type]  # one of its words
    alone = estimate_network(network, training)
    monkeypatch.setattr(CpuLoad, "available_bytes", lambda self: room * GIB)
    if not refused:
        check_network_fits(alone, CpuLoad(), training, ranks)
        return
    with pytest.raises(NetworkMemoryError, match=refused) as caught:
        check_network_fits(alone, CpuLoad(), training, ranks)
    assert "no smaller batch helps" in str(caught.value)
    explained = explain(caught.value)
    assert (explained.cause, explained.is_of_network) == ("oom", True)


class Gpu(CpuLoad):
    """Stands for a GPU with a lot of memory: none is here."""

    name = "gpu"  # type: ignore[assignment]  # it is the CPU's otherwise

    def available_bytes(self) -> int:
        return 80 * GIB


@pytest.mark.parametrize(
    "weights, ranks, here, parallel, on_gpus, refused",
    [
        (5, 1, 1, "auto", False, ""),
        (5, 2, 1, "ddp", False, ""),
        (5, 2, 2, "ddp", False, r"has 12\.0 GiB left of 12\.0 GiB as the share of each of the 2 ranks on this machine"),
        (2, 2, 2, "ddp", False, ""),
        (9, 2, 2, "fsdp", False, r"needs 18\.0 GiB on each of 2 ranks .* use a smaller network$"),
        (5, 8, 8, "fsdp", False, r"the weights alone need 5\.0 GiB, but the cpu has 3\.0 GiB left"),
        (5, 8, 8, "fsdp", True, r"the weights alone need 5\.0 GiB, but the cpu has 3\.0 GiB left"),
        (5, 8, 8, "ddp", True, r"need 5\.0 GiB, .* use a smaller network, or fewer ranks on this machine$"),
        (5, 8, 4, "fsdp", True, ""),
        (9, 1, 1, "auto", False, r"needs 36\.0 GiB without any batch .* use a smaller network$"),
        (9, 2, 1, "ddp", False, r"needs 36\.0 GiB .* or pipeline over 2 ranks with as much memory each$"),
    ],
)
def test_ranks_of_one_machine_share_its_memory(
    monkeypatch: pytest.MonkeyPatch, weights: int, ranks: int, here: int, parallel: str, on_gpus: bool, refused: str
) -> None:
    monkeypatch.setattr(device_load, "memory_limit_bytes", lambda: 24 * GIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=32 * GIB))
    monkeypatch.setattr(CpuLoad, "memory_bytes", lambda self: 0)
    alone = MemoryEstimate(weights=weights * GIB, gradients=weights * GIB, optimizer=2 * weights * GIB, micro_batch=0)
    training = TrainConfig(parallel=parallel)  # type: ignore[arg-type]  # one of its words
    load = Gpu() if on_gpus else CpuLoad(here)
    with pytest.raises(NetworkMemoryError, match=refused) if refused else nullcontext():
        check_network_fits(alone, load, training, ranks, on_this_machine=here)


def test_ranks_know_who_is_on_their_machine_and_training_counts_them(pair: RankPool) -> None:
    assert pair.run(ranks_here) == [(2, 2)] * 2
    assert ranks_here(Ranks.alone("cpu")) == (1, 1)


def ranks_here(ranks: Ranks) -> tuple[int, int]:
    watch = Watch(tiny_task("/nowhere"), ranks)
    return ranks.on_this_machine, watch._monitor.load.sharers


def test_training_refuses_a_network_before_it_is_built(
    few_digits: ImageData, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_networks, "LARGE_BYTES", 1)
    monkeypatch.setattr(CpuLoad, "available_bytes", lambda self: 1000)
    task = tiny_task(str(tmp_path), {"width": 64})
    with pytest.raises(NetworkMemoryError, match=r"the weights alone need .* MiB, but the cpu has 0 MiB left"):
        load_trainer("image_classification").fit(task, few_digits, Ranks.alone("cpu"), Script())
