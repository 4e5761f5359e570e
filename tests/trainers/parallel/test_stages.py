"""Cutting a chain of layers: nothing is left out, and the dearest stage is as cheap as can be."""

from collections.abc import Iterable
from contextlib import nullcontext

import pytest
import torch
from torch import nn

from search_spaces.catalog import nas_small
from trainers.errors import UserCodeError
from trainers.parallel.stages import Stage, chain_of, cut, hollow_copy, passages

CPU = torch.device("cpu")


def cut_into(network: nn.Module, stages: int, *inputs: torch.Tensor) -> list[slice]:
    layers = chain_of(network)
    return cut(layers, passages(layers, inputs, CPU, nullcontext()), stages)


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
def test_stages_of_a_cell_network_answer_what_the_network_answers(stages: int) -> None:
    assert nas_small.SPACE.defaults is not None
    network = nas_small.build_model(nas_small.SPACE.defaults, (1, 28, 28), 10).eval()
    images_NCHW = torch.rand(2, 1, 28, 28)
    layers = chain_of(network)
    parts = [Stage(layers[part]).eval() for part in cut_into(network, stages, images_NCHW)]
    answer = images_NCHW
    for part in parts:
        answer = part(answer)
    torch.testing.assert_close(answer, network(images_NCHW), rtol=0.0, atol=0.0)
    names = [name for part in parts for name in part.state_dict()]
    assert sorted(names) == sorted(network.state_dict())
    assert all(any(True for _ in part.parameters()) for part in parts)


def test_equal_layers_are_shared_evenly() -> None:
    network = nn.Sequential(*(nn.Linear(8, 8) for _ in range(12)))
    assert [part.stop - part.start for part in cut_into(network, 4, torch.rand(1, 8))] == [3, 3, 3, 3]


def test_dear_layer_stands_alone() -> None:
    network = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 500), nn.Linear(500, 1, bias=False))
    assert cut_into(network, 3, torch.rand(1, 4)) == [slice(0, 2), slice(2, 3), slice(3, 4)]


class Steps(nn.Module):
    """A chain that is no nn.Sequential; its first layer takes two inputs, and one layer is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(6, 2)
        self.first = nn.Bilinear(3, 4, 6)
        self.act = nn.ReLU()
        self.middle = nn.Linear(6, 6)

    def chain(self) -> Iterable[nn.Module]:
        return self.first, self.act, self.middle, self.act, self.last

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        answer = self.first(left, right)
        for layer in (self.act, self.middle, self.act, self.last):
            answer = layer(answer)
        tensor: torch.Tensor = answer
        return tensor


def test_network_that_tells_its_chain_is_cut_in_the_order_of_the_calls() -> None:
    network = Steps()
    inputs = (torch.rand(2, 3), torch.rand(2, 4))
    assert [layer.name for layer in chain_of(network)] == ["first", "act", "middle", "act", "last"]
    first, second = (Stage(chain_of(network)[part]) for part in cut_into(network, 2, *inputs))
    torch.testing.assert_close(second(first(*inputs)), network(*inputs))


def test_chain_of_strangers_is_refused() -> None:
    network = Steps()
    network.chain = lambda: [nn.Linear(1, 1)]  # type: ignore[method-assign]  # a wrong one
    with pytest.raises(UserCodeError, match=r"Steps.chain\(\) returns Linear, which is no child of its own"):
        chain_of(network)


def test_layer_whose_work_depends_on_values_is_refused() -> None:
    class Choosing(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) if bool(x.sum() > 0.0) else x

    with pytest.raises(UserCodeError, match="layer '1' answers without computing it"):
        cut_into(nn.Sequential(nn.Linear(2, 2), Choosing(2, 2)), 2, torch.rand(1, 2))


def test_cuts_are_where_one_tensor_is_handed_on() -> None:
    class Two(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x, x

    class Sum(nn.Module):
        def forward(self, pair: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
            return pair[0] + pair[1]

    network = nn.Sequential(nn.Linear(2, 2), Two(), Sum(), nn.Linear(2, 2))
    first, second = cut_into(network, 2, torch.rand(1, 2))
    assert first.stop in (1, 3) and second.stop == 4


def test_hollow_copy_has_names_and_shapes_and_no_memory() -> None:
    network = nn.Sequential(nn.Linear(1000, 1000), nn.BatchNorm1d(1000))
    hollow = hollow_copy(network)
    assert {name: t.shape for name, t in hollow.state_dict().items()} == {
        name: t.shape for name, t in network.state_dict().items()
    }
    assert sum(weight.untyped_storage().nbytes() for weight in hollow.parameters()) < 100
    assert [weight.requires_grad for weight in hollow.parameters()] == [True] * 4
