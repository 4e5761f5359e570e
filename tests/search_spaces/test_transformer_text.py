import pytest
import torch

from search_spaces import catalog
from search_spaces.shapes import TextShape
from search_spaces.text_transformer import EncoderBlock, text_transformer_network

SHAPE = TextShape(length=16, vocabulary=30)
transformer_text = catalog.load("transformer_text")


@pytest.fixture
def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return text_transformer_network(SHAPE, 3, depth=2, width=16, heads=4, expansion=2, dropout=0.3).eval()


@pytest.mark.parametrize("length", [1, 5, 15])
def test_answer_does_not_depend_on_how_far_texts_are_filled_up(network: torch.nn.Module, length: int) -> None:
    tokens_NL = torch.randint(1, SHAPE.vocabulary, (4, length))
    filled_NL = torch.nn.functional.pad(tokens_NL, (0, 16 - length))
    torch.testing.assert_close(network(filled_NL), network(tokens_NL), rtol=0.0, atol=1e-5)


def test_answer_does_not_depend_on_other_texts_of_the_batch(network: torch.nn.Module) -> None:
    tokens_NL = torch.randint(1, SHAPE.vocabulary, (4, 8))
    torch.testing.assert_close(network(tokens_NL)[:2], network(tokens_NL[:2]), rtol=0.0, atol=1e-5)


def test_order_of_the_tokens_counts(network: torch.nn.Module) -> None:
    tokens_NL = torch.tensor([[2, 3, 4]])
    assert (network(tokens_NL) - network(tokens_NL.flip(1))).abs().max() > 1e-3


def test_gradients_of_texts_that_are_filled_up_are_finite(network: torch.nn.Module) -> None:
    tokens_NL = torch.tensor([[2] + [0] * 15, [3] * 16])
    network.train()(tokens_NL).square().sum().backward()
    for name, weight in network.named_parameters():
        assert weight.grad is not None and torch.isfinite(weight.grad).all(), name


def test_heads_divide_every_width_of_the_space() -> None:
    parameters = transformer_text.SPACE.parameters
    widths, heads = parameters["width"].to_json(), parameters["heads"].to_json()
    assert all(
        width % head == 0
        for width in range(widths["low"], widths["high"] + 1, widths["step"])
        for head in heads["choices"]
    )
    with pytest.raises(ValueError, match="3 heads do not divide a width of 32"):
        EncoderBlock(32, 3, 1, 0.0)


def test_stochastic_depth_skips_blocks_while_training_only() -> None:
    torch.manual_seed(1)
    block = EncoderBlock(8, 2, 1, 0.0, drop_part=0.9)
    marked = torch.cat([torch.randn(64, 3, 8), torch.ones(64, 3, 1)], dim=2)
    unchanged = (block.train()(marked) == marked).flatten(1).all(dim=1)
    assert 0.6 < unchanged.float().mean() < 0.95  # both parts are left out with likelihood 0.81
    assert not (block.eval()(marked) == marked).flatten(1).all(dim=1).any()
