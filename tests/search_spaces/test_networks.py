import numpy as np
import pytest
import torch
from torch import nn

from search_spaces import InfeasibleArchitectureError
from search_spaces.cost import count_parameters
from search_spaces.genotype import EDGES, OPERATIONS, CellGenotype
from search_spaces.networks import CellNetwork
from tests.search_spaces.cells import cell, uniform_cell

SIZES = [(1, 1), (2, 2), (3, 3), (5, 3), (8, 8), (2, 128), (1, 9), (28, 28), (32, 32), (97, 64)]


@pytest.mark.parametrize(("height", "width"), SIZES)
@pytest.mark.parametrize("channels_in", [1, 3])
def test_network_runs_on_images_of_any_size(channels_in: int, height: int, width: int) -> None:
    model = _network(uniform_cell("conv3x3"), (channels_in, height, width))
    images_NCHW = torch.rand(2, channels_in, height, width)
    assert model.get_submodule("stages")(model.get_submodule("stem")(images_NCHW)).shape[2:] == model.skeleton.map_size
    logits_NK = model(images_NCHW)
    assert logits_NK.shape == (2, 7)
    logits_NK.sum().backward()
    assert _idle_weights(model) == []


def test_network_runs_on_photographs() -> None:
    model = _network(uniform_cell("avg_pool"), (3, 224, 224))
    with torch.no_grad():
        assert model(torch.rand(2, 3, 224, 224)).shape == (2, 7)


def test_every_weight_of_random_cells_receives_a_gradient_in_every_step() -> None:
    rng = np.random.default_rng(0)
    built = 0
    while built < 60:
        operations = rng.choice(OPERATIONS, size=len(EDGES))
        genotype = CellGenotype({edge: str(op) for edge, op in zip(EDGES, operations, strict=True)})
        if not genotype.has_path():
            continue
        model = _network(genotype, (1, 4, 4))
        for _ in range(2):
            model.zero_grad(set_to_none=True)
            model(torch.rand(3, 1, 4, 4)).square().sum().backward()
            assert _idle_weights(model) == [], genotype.to_string()
        built += 1


@pytest.mark.parametrize("genotype", [uniform_cell("skip"), cell(e03="skip")], ids=["all_skip", "one_skip"])
def test_network_without_cell_weights_still_learns(genotype: CellGenotype) -> None:
    torch.manual_seed(0)
    model = _network(genotype, (1, 8, 8))
    assert all(count_parameters(module) == 0 for module in _cells(model))
    assert count_parameters(model.get_submodule("head")) == 16 * 7 + 7
    images_NCHW, labels_N = torch.rand(14, 1, 8, 8), torch.arange(14) % 7
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(40):
        loss = nn.functional.cross_entropy(model(images_NCHW), labels_N)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


def test_network_answers_do_not_depend_on_the_memory_format() -> None:
    model = _network(uniform_cell("conv3x3"), (3, 8, 8)).eval()
    images_NCHW = torch.rand(2, 3, 8, 8)
    other = model(images_NCHW.contiguous(memory_format=torch.channels_last))
    assert torch.allclose(model(images_NCHW), other, atol=1e-5)


def test_network_drops_out_in_training_only() -> None:
    model = _network(cell(e03="skip"), (1, 8, 8), dropout=0.5)
    images_NCHW = torch.rand(4, 1, 8, 8)
    assert not torch.equal(model(images_NCHW), model(images_NCHW))
    model.eval()
    assert torch.equal(model(images_NCHW), model(images_NCHW))


def test_network_same_seed_gives_same_weights() -> None:
    states = []
    for _ in range(2):
        torch.manual_seed(3)
        states.append(_network(uniform_cell("conv1x1"), (1, 8, 8)).state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_network_without_a_path_cannot_be_built() -> None:
    with pytest.raises(InfeasibleArchitectureError, match="no path from input to output"):
        _network(uniform_cell("none"), (1, 8, 8))


def test_network_lists_sizes_that_cannot_be() -> None:
    with pytest.raises(ValueError, match=r"image channels=0, num_classes=0, cells_per_stage=0"):
        CellNetwork(uniform_cell("skip"), (0, 8, 8), 0, channels=8, cells_per_stage=0)
    with pytest.raises(ValueError, match="images of 0x8 pixels"):
        _network(uniform_cell("skip"), (1, 0, 8))


def _network(genotype: CellGenotype, input_shape: tuple[int, int, int], dropout: float = 0.0) -> CellNetwork:
    return CellNetwork(genotype, input_shape, 7, channels=8, cells_per_stage=1, dropout=dropout)


def _cells(model: CellNetwork) -> list[nn.Module]:
    found = [module for module in model.modules() if type(module).__name__ == "Cell"]
    assert found
    return found


def _idle_weights(model: nn.Module) -> list[str]:
    return [name for name, weight in model.named_parameters() if weight.grad is None]
