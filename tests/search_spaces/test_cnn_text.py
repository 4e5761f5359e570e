import torch
from torch import Tensor

from search_spaces import catalog
from search_spaces.cost import count_parameters
from search_spaces.shapes import TextShape
from search_spaces.text_convolutions import TextConvolutions, text_convolution_network

SHAPE = TextShape(length=16, vocabulary=30)
cnn_text = catalog.load("cnn_text")


def filled_up(tokens_NL: Tensor, length: int) -> Tensor:
    return torch.nn.functional.pad(tokens_NL, (0, length - tokens_NL.shape[1]))


def test_answer_does_not_depend_on_how_far_texts_are_filled_up() -> None:
    torch.manual_seed(0)
    network = text_convolution_network(SHAPE, 3, width=8, filters=6, windows=(1, 2, 3, 4, 7)).eval()
    for length in (1, 2, 5):
        tokens_NL = torch.randint(1, SHAPE.vocabulary, (4, length))
        alone_NK = network(tokens_NL)
        torch.testing.assert_close(network(filled_up(tokens_NL, 16)), alone_NK, rtol=0.0, atol=1e-6)


def test_filters_find_their_sequence_wherever_it_stands() -> None:
    layer = TextConvolutions(width=2, filters=1, windows=(2,))
    with torch.no_grad():  # a token 10 and then a token 01
        layer.get_parameter("convolutions.0.weight").copy_(torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]))
        layer.get_parameter("convolutions.0.bias").fill_(-1.0)
    one, two, mark = torch.tensor([1.0, 0.0, 1.0]), torch.tensor([0.0, 1.0, 1.0]), torch.tensor([0.0, 0.0, 1.0])
    texts = [[one, two, mark, mark], [mark, mark, one, two], [two, one, mark, mark], [mark, one, mark, two]]
    marked = torch.stack([torch.stack(text) for text in texts])
    assert layer(marked)[:, 0].tolist() == [1.0, 1.0, 0.0, 0.0]


def test_configuration_names_the_windows_of_the_filters() -> None:
    values = {**(cnn_text.SPACE.defaults or {}), "smallest_window": 2, "windows": 3, "width": 32, "filters": 64}
    network = cnn_text.build_model(values, SHAPE, 5)
    convolutions = 64 * 32 * (2 + 3 + 4) + 3 * 64
    assert count_parameters(network) == 30 * 32 + convolutions + 5 * 3 * 64 + 5


def test_gradients_of_the_filling_are_zero() -> None:
    network = text_convolution_network(SHAPE, 3, width=8, filters=6, windows=(3,))
    network(filled_up(torch.randint(1, 30, (4, 3)), 8)).square().sum().backward()
    gradient = network.get_parameter("embedding.tokens.weight").grad
    assert gradient is not None and gradient[0].abs().sum() == 0.0 < gradient.abs().sum()
