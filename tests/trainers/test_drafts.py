"""Networks that are looked at before any is trained: how often they are built, and what they cost either way."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from trainers import drafts as module
from trainers import large_networks
from trainers.config import TrainConfig
from trainers.data.spec import DataSpec
from trainers.drafts import Drafts
from trainers.tasks import load_trainer

OWN = """
from search_spaces import Integer, SearchSpace

SPACE = SearchSpace("own", {"width": Integer(low=1, high=50_000_000, role="architecture")})
BUILT = []


def build_model(configuration, input_shape, num_classes):
    import torch
    from torch import nn
    BUILT.append(torch.empty(0).device.type)
    BUILD
    inner = input_shape[0] * input_shape[1] * input_shape[2]
    return nn.Sequential(
        nn.Flatten(), nn.Linear(inner, configuration["width"]), nn.Linear(configuration["width"], num_classes)
    )
"""


@pytest.fixture
def drafts(tmp_path: Path) -> Callable[..., Drafts]:
    def make(build: str = "pass") -> Drafts:
        path = tmp_path / "own.py"
        path.write_text(OWN.replace("BUILD\n", f"{build}\n"))
        trainer = load_trainer("image_classification")
        return trainer.drafts(str(path), trainer.load(DataSpec(source="digits")))

    return make


def built(drafts: Drafts) -> list[str]:
    from search_spaces.catalog import load

    found: list[str] = vars(load(drafts._space))["BUILT"]
    return found


def test_all_costs_of_a_small_network_build_it_once(drafts: Callable[..., Drafts]) -> None:
    own = drafts()
    assert own.count_parameters({"width": 3}) == 65 * 3 + 40
    assert own.count_multiply_adds({"width": 3}) == 64 * 3 + 30
    assert own.estimate_memory_bytes({"width": 3}, TrainConfig(), ranks=1) is not None
    assert own.measure_latency_ms({"width": 3}, "cpu") > 0.0
    assert built(own) == ["cpu"]
    assert own.count_parameters({"width": 4}) == 65 * 4 + 50
    assert built(own) == ["cpu", "cpu"]


def test_large_network_is_costed_without_memory(drafts: Callable[..., Drafts]) -> None:
    own = drafts()
    width = 50_000_000  # 15 GB
    assert own.count_parameters({"width": width}) == 75 * width + 10
    assert own.count_multiply_adds({"width": width}) == 74 * width
    assert built(own) == ["cpu", "meta"]


@pytest.mark.parametrize("name, most", [("MOST_REAL_WORK", 0), ("LARGE_BYTES", 0)])
def test_costs_do_not_depend_on_the_way_they_are_counted(
    drafts: Callable[..., Drafts], name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module if name in vars(module) else large_networks, name, most)
    own = drafts()
    assert own.count_parameters({"width": 3}) == 65 * 3 + 40
    assert own.count_multiply_adds({"width": 3}) == 64 * 3 + 30


def test_exit_of_a_persons_code_is_told_and_draws_nothing(drafts: Callable[..., Drafts]) -> None:
    own = drafts("torch.rand(5); raise SystemExit(3)")
    state = torch.get_rng_state()
    with pytest.raises(SystemExit):
        own.count_parameters({"width": 3})
    assert torch.equal(torch.get_rng_state(), state)
