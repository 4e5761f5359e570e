from pathlib import Path
from typing import Any

import pytest
import torch

from search_spaces import InfeasibleArchitectureError, catalog
from search_spaces.catalog.ft_transformer import MOST_COLUMNS
from search_spaces.cost import count_multiply_adds_of, count_parameters
from search_spaces.shapes import TableShape
from search_spaces.table_transformer import ColumnBlock, ColumnTokens, ReGLU, table_transformer_network
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

ft_transformer = catalog.load("ft_transformer")
SPACE = ft_transformer.SPACE


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("num_outputs", [1, 3])
def test_tables_of_every_kind_have_a_network_that_is_a_chain(shape: TableShape, num_outputs: int) -> None:
    network = build(ft_transformer, shape, configuration(SPACE), num_outputs)
    assert network(*inputs(shape)).shape == (4, num_outputs)
    network.eval()
    assert torch.equal(chained(network, inputs(shape)), network(*inputs(shape)))


def test_weights_are_those_of_the_published_network() -> None:
    shape = TableShape(numbers=3, categories=(4, 2))
    values = configuration(SPACE, depth=2, heads=2, head_width=8, expansion=1.5)
    network = build(ft_transformer, shape, values, 5)
    width, hidden, tokens = 16, 24, 1 + 3 + 2
    embedded = 3 * width + 6 * width + 5 * width + width  # numbers, categories, columns, the row
    attention = (width + 1) * 3 * width + (width + 1) * width
    each_token = 2 * width + (width + 1) * 2 * hidden + (hidden + 1) * width
    only_one_norm = 2 * width  # of the second block: the first attends to tokens as they are
    head = 2 * width + (width + 1) * 5
    assert count_parameters(network) == embedded + 2 * (attention + each_token) + only_one_norm + head
    block = tokens * (4 * width**2 + 3 * width * hidden) + 2 * tokens**2 * width
    assert count_multiply_adds_of(network, *inputs(shape, 1)) == 2 * block + width * 5


def test_tokens_are_numbers_and_categories_by_their_own_vectors() -> None:
    tokens = ColumnTokens(TableShape(numbers=2, categories=(2, 3)), 4)
    assert tokens.scales_DE is not None and tokens.vectors is not None
    with torch.no_grad():
        row_NLE = tokens(torch.tensor([[2.0, -1.0]]), torch.tensor([[1, 2]]))
        expected = torch.stack(
            [
                tokens.row_token_E,
                2.0 * tokens.scales_DE[0] + tokens.columns_TE[0],
                -1.0 * tokens.scales_DE[1] + tokens.columns_TE[1],
                tokens.vectors.weight[1] + tokens.columns_TE[2],
                tokens.vectors.weight[2 + 2] + tokens.columns_TE[3],
            ]
        )
    assert torch.allclose(row_NLE, expected[None])


def test_columns_look_at_each_other_without_an_order() -> None:
    torch.manual_seed(0)
    block = ColumnBlock(2, 8, 1.0, is_first=True).eval()
    tokens_NLE = torch.rand(1, 5, 16)
    order = torch.tensor([3, 0, 4, 1, 2])
    assert torch.allclose(block(tokens_NLE[:, order]), block(tokens_NLE)[:, order], atol=1e-6)
    changed = tokens_NLE.clone()
    changed[:, 4] += 1.0
    assert (block(changed) - block(tokens_NLE))[:, 0].abs().max() > 1e-4


def test_gates_let_through_what_they_are_above_zero() -> None:
    assert ReGLU()(torch.tensor([[1.0, 2.0, -1.0, 3.0]])).tolist() == [[0.0, 6.0]]


@pytest.mark.parametrize("name", ["attention_dropout", "hidden_dropout", "residual_dropout"])
def test_each_dropout_acts_in_training_alone(name: str) -> None:
    sizes: dict[str, Any] = {"depth": 1, "heads": 2, "head_width": 8, "expansion": 1.0, name: 0.5}
    network, rows = table_transformer_network(SHAPES["both"], 3, **sizes), inputs(SHAPES["both"])
    assert not torch.equal(network(*rows), network(*rows))
    network.eval()
    assert torch.equal(network(*rows), network(*rows))


def test_more_columns_than_can_look_at_each_other_are_infeasible() -> None:
    with torch.device("meta"):
        build(ft_transformer, TableShape(MOST_COLUMNS - 1, (3,)), configuration(SPACE))
    with pytest.raises(
        InfeasibleArchitectureError, match=r"each of 513 columns .* at most 512 can; search tabular_mlp"
    ):
        build(ft_transformer, TableShape(MOST_COLUMNS, (3,)), configuration(SPACE))


def test_network_without_columns_or_blocks_is_refused() -> None:
    with pytest.raises(ValueError, match="depth=0 must be at least 1; a table without columns says nothing"):
        table_transformer_network(TableShape(0), 2, depth=0, heads=1, head_width=8, expansion=1.0)


@pytest.mark.slow
def test_random_networks_learn() -> None:
    check_that_draws_learn(ft_transformer, 1)


@pytest.mark.slow
@real_tables
def test_defaults_learn_a_real_table(tmp_path: Path) -> None:
    assert accuracy_on_magic("ft_transformer", tmp_path, epochs=2) > 0.84
