from pathlib import Path

import pytest
import torch

from search_spaces import InvalidConfigurationError, catalog
from search_spaces.cost import count_multiply_adds_of, count_parameters
from search_spaces.shapes import TableShape
from search_spaces.table_residual import RowBlock, table_residual_network
from tests.search_spaces.table_spaces import (
    SHAPES,
    accuracy_on_magic,
    build,
    chained,
    check_that_draws_learn,
    configuration,
    inputs,
    real_tables,
)

tabular_resnet = catalog.load("tabular_resnet")
SPACE = tabular_resnet.SPACE


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("num_outputs", [1, 3])
def test_tables_of_every_kind_have_a_network_that_is_a_chain(shape: TableShape, num_outputs: int) -> None:
    network = build(tabular_resnet, shape, configuration(SPACE), num_outputs)
    assert network(*inputs(shape)).shape == (4, num_outputs)
    network.eval()
    assert torch.equal(chained(network, inputs(shape)), network(*inputs(shape)))


def test_weights_are_those_of_the_published_block() -> None:
    shape = TableShape(numbers=3, categories=(4, 2))
    values = configuration(SPACE, depth=3, width=32, expansion=2, embedding=2)
    network = build(tabular_resnet, shape, values, 5)
    block = 2 * 32 + (32 + 1) * 64 + (64 + 1) * 32
    assert count_parameters(network) == 6 * 2 + (7 + 1) * 32 + 3 * block + 2 * 32 + (32 + 1) * 5
    assert count_multiply_adds_of(network, *inputs(shape, 1)) == 7 * 32 + 3 * 2 * 32 * 64 + 32 * 5


def test_block_adds_to_what_it_is_given() -> None:
    block = RowBlock(8, 2, "layer")
    block.branch[4].weight.data.zero_()  # type: ignore[operator]  # the second linear layer
    block.branch[4].bias.data.fill_(0.5)  # type: ignore[operator]
    rows_NF = torch.rand(3, 8)
    assert torch.allclose(block(rows_NF), rows_NF + 0.5)


@pytest.mark.parametrize(("norm", "depends"), [("batch", True), ("layer", False)])
def test_rows_depend_on_each_other_only_by_batch_normalisation(norm: str, depends: bool) -> None:
    shape = SHAPES["both"]
    values = configuration(SPACE, norm=norm, hidden_dropout=0.0)
    network = build(tabular_resnet, shape, values)  # in training mode
    numbers_ND, categories_NC = inputs(shape)
    first, few = network(numbers_ND, categories_NC)[0], network(numbers_ND[:2], categories_NC[:2])[0]
    assert torch.allclose(first, few, atol=1e-6) is not depends


def test_network_without_columns_or_blocks_is_refused() -> None:
    with pytest.raises(ValueError, match="depth=0 must be at least 1; a table without columns says nothing"):
        table_residual_network(TableShape(0), 2, depth=0, width=8, expansion=1, embedding=2)
    with pytest.raises(InvalidConfigurationError, match="depth"):
        build(tabular_resnet, TableShape(2), configuration(SPACE, depth=0))


@pytest.mark.slow
def test_random_networks_learn() -> None:
    check_that_draws_learn(tabular_resnet, 1)


@pytest.mark.slow
@real_tables
def test_defaults_learn_a_real_table(tmp_path: Path) -> None:
    assert accuracy_on_magic("tabular_resnet", tmp_path, epochs=4) > 0.855
