"""What is told before a training agrees with what torch really allocates, and what cannot fit is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from search_spaces.way_back import Kept, peak_on_the_way_back
from tests.trainers.training import Script, tiny_task
from trainers.config import OptimizerName, TrainConfig
from trainers.data.arrays import ImageData
from trainers.device_load import CpuLoad
from trainers.distributed import Ranks
from trainers.errors import DeviceMemoryError
from trainers.estimates import OPTIMIZER_STATES, check_fits, estimate_epoch_s, estimate_memory, expected_peak
from trainers.optimizers import build_optimizer
from trainers.problem import Batch
from trainers.tasks import load_trainer


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, 32)
        self.layer = nn.TransformerEncoderLayer(32, 4, 128, batch_first=True)
        self.answer = nn.Linear(32, 10)

    def forward(self, tokens_NL: torch.Tensor) -> torch.Tensor:
        answers: torch.Tensor = self.answer(self.layer(self.embedding(tokens_NL)).mean(dim=1))
        return answers


def convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], torch.Tensor]]] = {
    "convolutions": (convolutions, lambda items: torch.zeros(items, 1, 28, 28)),
    "perceptron": (perceptron, lambda items: torch.zeros(items, 64)),
    "attention": (Attention, lambda items: torch.zeros(items, 32, dtype=torch.int64)),
}


def allocated_by_a_step(
    network: nn.Module, inputs: Callable[[int], torch.Tensor], training: TrainConfig, file: Path
) -> int:
    """The most that torch has allocated at a time in a step, without weights and optimizer state."""
    optimizer = build_optimizer(network, training)
    items = training.micro_batch(1)

    def step() -> None:
        for _ in range(training.accumulate):
            answers = network(inputs(items))
            nn.functional.cross_entropy(answers, torch.zeros(items, dtype=torch.int64)).backward()  # type: ignore[no-untyped-call]  # torch
            del answers
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    step()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        step()
    found.export_chrome_trace(str(file))
    events = [event for event in json.loads(file.read_text())["traceEvents"] if event.get("name") == "[memory]"]
    sizes = [event["args"]["Total Allocated"] for event in events]
    first = sizes[0] - events[0]["args"]["Bytes"]
    return int(max(sizes) - first)


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("name", NETWORKS)
def test_estimate_is_near_what_torch_allocates(name: str, accumulate: int, tmp_path: Path) -> None:
    build, inputs = NETWORKS[name]
    network = build().train()
    training = TrainConfig(batch_size=128, accumulate=accumulate)
    estimate = estimate_memory(network, Batch((inputs(1),), torch.zeros(1)), training)
    assert estimate is not None
    expected = estimate.peak - estimate.weights - estimate.optimizer
    real = allocated_by_a_step(network, inputs, training, tmp_path / "trace.json")
    assert expected == pytest.approx(real, rel=0.2)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("name", OPTIMIZER_STATES)
def test_state_of_every_optimizer_is_known(name: OptimizerName, momentum: float) -> None:
    network = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 64))
    training = TrainConfig(optimizer=name, momentum=momentum)
    optimizer = build_optimizer(network, training)
    network(torch.ones(2, 64)).sum().backward()
    optimizer.step()
    states = sum(
        value.numel() * value.element_size()
        for state in optimizer.state.values()
        for value in state.values()
        if isinstance(value, torch.Tensor)
    )
    estimate = estimate_memory(network, Batch((torch.ones(1, 64),), torch.zeros(1)), training)
    assert estimate is not None
    assert estimate.gradients == 4 * sum(weight.numel() for weight in network.parameters())
    if name == "muon":  # by its table only what is a hidden matrix
        assert estimate.optimizer <= states <= 2 * estimate.optimizer
    else:
        assert estimate.optimizer == pytest.approx(states, rel=0.01)


def test_estimating_changes_neither_network_nor_random_state() -> None:
    network = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5)).eval()
    network[0].train()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    random = torch.random.get_rng_state()
    assert estimate_memory(network, Batch((torch.ones(1, 8),), torch.zeros(1)), TrainConfig()) is not None
    assert torch.equal(random, torch.random.get_rng_state())
    assert all(torch.equal(before[name], tensor) for name, tensor in network.state_dict().items())
    assert [module.training for module in network] == [True, False, False]


def test_network_that_looks_at_values_is_not_estimated() -> None:
    class Curious(nn.Linear):
        def forward(self, values: torch.Tensor) -> torch.Tensor:
            return super().forward(values) if float(values.sum()) > 0.0 else values

    assert estimate_memory(Curious(8, 8), Batch((torch.ones(1, 8),), torch.zeros(1)), TrainConfig()) is None


def test_more_micro_batches_need_less_and_averages_and_ranks_more() -> None:
    def peak(ranks: int = 1, **settings: float) -> int:
        training = TrainConfig(batch_size=256, **settings)  # type: ignore[arg-type]  # numbers
        batch = Batch((torch.zeros(1, 1, 28, 28),), torch.zeros(1))
        estimate = estimate_memory(convolutions(), batch, training, ranks=ranks)
        assert estimate is not None
        return estimate.peak

    assert peak(accumulate=4) < 0.3 * peak()
    assert peak(ranks=4) == peak(accumulate=4)
    assert peak(ema=0.9) > peak()


def test_time_of_an_epoch_has_its_validation() -> None:
    assert estimate_epoch_s(30.0, training_items=1000, validation_items=0) == 30.0
    assert estimate_epoch_s(30.0, training_items=1000, validation_items=1000) == pytest.approx(40.0)


def test_averages_are_not_on_the_device_yet_and_still_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    network = perceptron()
    batch, size = Batch((torch.zeros(1, 64),), torch.zeros(1)), 4 * sum(w.numel() for w in network.parameters())
    plain = estimate_memory(network, batch, TrainConfig())
    averaged = estimate_memory(network, batch, TrainConfig(ema=0.9))
    assert plain is not None and averaged is not None
    assert (plain.weights, plain.averages, averaged.weights, averaged.averages) == (size, 0, size, size)
    load = CpuLoad()
    monkeypatch.setattr(load, "memory_bytes", lambda: 0)
    assert expected_peak(averaged, load) - expected_peak(plain, load) == size
    monkeypatch.setattr(load, "available_bytes", lambda: plain.peak - size)
    check_fits(plain, load, 64)
    with pytest.raises(DeviceMemoryError, match=r"weights 4 MiB, averages 4 MiB, gradients 4 MiB"):
        check_fits(averaged, load, 64)


def test_training_that_cannot_fit_is_refused_with_both_numbers(
    few_digits: ImageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer, ranks = load_trainer("image_classification"), Ranks.alone("cpu")
    whole = tiny_task(tmp_path, {"width": 64}, epochs=1, batch_size=64)
    cut = tiny_task(tmp_path, {"width": 64}, epochs=1, batch_size=64, accumulate=8)
    room = 2 * 2**20
    monkeypatch.setattr(CpuLoad, "available_bytes", lambda self: room)
    with pytest.raises(
        DeviceMemoryError, match=r"a micro-batch of 64 items needs [3-9] MiB more memory .* the cpu has 2 MiB left of"
    ):
        trainer.fit(whole, few_digits, ranks, Script())
    assert trainer.fit(cut, few_digits, ranks, Script()).outcome == "completed"


def test_facts_hold_what_was_expected_beside_what_was(few_digits: ImageData, tmp_path: Path) -> None:
    task = tiny_task(tmp_path)
    facts = load_trainer("image_classification").fit(task, few_digits, Ranks.alone("cpu"), Script()).facts
    expected, real = facts["estimated_memory_mib"], facts["device_memory_mib"]
    assert isinstance(expected, float) and isinstance(real, float)
    assert expected == pytest.approx(real, rel=0.3)


def test_peak_on_the_way_back_is_where_batch_and_gradients_are_most_together() -> None:
    first, weight, last = Kept(100, False, True), Kept(1000, True, True), Kept(10, False, False)
    assert peak_on_the_way_back([first, weight, last], gradients_stay=False) == 100 + 1000 + 200
    assert peak_on_the_way_back([first, weight, last], gradients_stay=True) == 100 + 200
    assert peak_on_the_way_back([weight, last], gradients_stay=False) == 1000
    assert peak_on_the_way_back([], gradients_stay=False) == 0
