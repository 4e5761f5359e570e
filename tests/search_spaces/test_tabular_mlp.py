import pytest
import torch
from torch import nn

from search_spaces import InvalidConfigurationError, catalog
from search_spaces.configuration import JsonScalar
from search_spaces.cost import count_multiply_adds_of, count_parameters
from search_spaces.shapes import TableShape
from search_spaces.table_layers import ACTIVATIONS, NORMS, TableInput, TableNetwork

tabular_mlp = catalog.load("tabular_mlp")
SPACE = tabular_mlp.SPACE


def configuration(**values: JsonScalar) -> dict[str, JsonScalar]:
    assert SPACE.defaults is not None
    return {**SPACE.defaults, **values}


def inputs(shape: TableShape, rows: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    numbers_ND = torch.rand(rows, shape.numbers, generator=torch.Generator().manual_seed(0))
    categories_NC = torch.tensor([[row % size for size in shape.categories] for row in range(rows)], dtype=torch.int64)
    return numbers_ND, categories_NC.reshape(rows, len(shape.categories))


@pytest.mark.parametrize(
    "shape",
    [TableShape(3), TableShape(0, (4, 2)), TableShape(1, (5,)), TableShape(2, (1,))],
    ids=["numbers", "categories", "both", "unknown only"],
)
@pytest.mark.parametrize("num_outputs", [1, 3])
def test_tables_of_every_kind_have_a_network(shape: TableShape, num_outputs: int) -> None:
    network = tabular_mlp.build_model(configuration(depth=2), shape, num_outputs)
    assert network(*inputs(shape)).shape == (4, num_outputs)


def test_weights_are_those_of_the_layers() -> None:
    shape = TableShape(numbers=3, categories=(4, 2))
    network = tabular_mlp.build_model(configuration(depth=2, width=32, embedding=2, norm="none"), shape, 5)
    layers = (3 + 2 * 2 + 1) * 32 + 33 * 32 + 33 * 5
    assert count_parameters(network) == 6 * 2 + layers
    assert count_multiply_adds_of(network, *inputs(shape, 1)) == 7 * 32 + 32 * 32 + 32 * 5


def test_columns_do_not_share_the_vectors_of_their_categories() -> None:
    layer = TableInput(TableShape(numbers=1, categories=(2, 3)), embedding=1)
    assert layer.vectors is not None
    layer.vectors.weight.data = torch.arange(5.0)[:, None]
    answers = layer(torch.tensor([[9.0], [9.0]]), torch.tensor([[0, 0], [1, 2]]))
    assert answers.tolist() == [[9.0, 0.0, 2.0], [9.0, 1.0, 4.0]]


def test_network_is_a_chain_of_its_parts() -> None:
    shape = TableShape(numbers=3, categories=(4,))
    network = TableNetwork(shape, 2, depth=2, width=8, embedding=2, norm="layer", dropout=0.5).eval()
    first, *others = network.chain()
    answers = first(*inputs(shape))
    for part in others:
        answers = part(answers)
    assert torch.equal(answers, network(*inputs(shape)))
    assert {id(weight) for part in network.chain() for weight in part.parameters()} == {
        id(weight) for weight in network.parameters()
    }


def test_every_norm_and_activation_of_the_space_is_built() -> None:
    for name, known in (("norm", NORMS), ("activation", ACTIVATIONS)):
        assert tuple(SPACE.to_json()["parameters"][name]["choices"]) == tuple(known)
        for choice in known:
            network = tabular_mlp.build_model(configuration(depth=1, **{name: choice}), TableShape(2), 2)
            assert isinstance(network, nn.Module)


def test_network_without_columns_or_layers_is_refused() -> None:
    with pytest.raises(ValueError, match="depth=0 must be at least 1; a table without columns says nothing"):
        TableNetwork(TableShape(0), 2, depth=0, width=8, embedding=2)
    with pytest.raises(InvalidConfigurationError, match="depth"):
        tabular_mlp.build_model(configuration(depth=0), TableShape(2), 2)
