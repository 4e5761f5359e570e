import time

import pytest
import torch
from torch import Tensor, nn

from search_spaces.latency import measure_latency_ms, one_cpu_thread


class _Slow(nn.Module):
    """Takes a known time for each item, and remembers how it was called."""

    def __init__(self, item_s: float) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.item_s = item_s
        self.passes: list[tuple[int, bool, bool]] = []

    def forward(self, x_NC: Tensor) -> Tensor:
        self.passes.append((len(x_NC), self.training, torch.is_grad_enabled()))
        end = time.perf_counter() + self.item_s * len(x_NC)
        while time.perf_counter() < end:
            pass
        y_NC: Tensor = self.norm(x_NC)
        return y_NC


def test_latency_is_the_time_of_a_pass_of_so_many_items() -> None:
    model = _Slow(0.004)
    one = measure_latency_ms(model, torch.rand(2, 3))
    four = measure_latency_ms(model, torch.rand(1, 3), items=4)
    assert one >= 4.0  # whatever else the machine does
    assert four >= 16.0
    assert {items for items, _, _ in model.passes} == {1, 4}


def test_latency_leaves_the_model_as_it_is() -> None:
    model = _Slow(0.0)
    mean = model.norm.running_mean
    assert mean is not None
    before = mean.clone()
    measure_latency_ms(model, torch.rand(1, 3))
    assert model.training and model.norm.training
    assert torch.equal(mean, before)
    assert not any(is_training or has_gradients for _, is_training, has_gradients in model.passes)


def test_slow_network_is_not_repeated_for_long() -> None:
    model = _Slow(0.2)
    measure_latency_ms(model, torch.rand(1, 3))
    assert len(model.passes) <= 5


def test_network_without_memory_or_items_is_refused() -> None:
    with pytest.raises(ValueError, match="a model that has memory"):
        measure_latency_ms(nn.Linear(3, 3, device="meta"), torch.rand(1, 3))
    with pytest.raises(ValueError, match="items=0"):
        measure_latency_ms(nn.Linear(3, 3), torch.rand(1, 3), items=0)


def test_one_cpu_thread_is_given_back() -> None:
    threads = torch.get_num_threads()
    with one_cpu_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == threads
