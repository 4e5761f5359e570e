from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from search_spaces import catalog
from search_spaces.cost import (
    costs,
    costs_of_parts,
    count_multiply_adds,
    count_multiply_adds_of,
    count_parameters,
    try_and_count_multiply_adds,
)
from search_spaces.example_inputs import EXAMPLE_OUTPUTS, EXAMPLE_SHAPES, example_inputs
from search_spaces.shapes import InputShape, TableShape, TextShape


class _WithBareWeights(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(10, 11)
        self.bare = nn.Parameter(torch.zeros(5))

    def forward(self, x_NC: Tensor) -> Tensor:
        y_NK: Tensor = self.linear(x_NC)
        return y_NK + self.bare.sum()


class _UsedTwice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8, bias=False)
        self.second = self.first

    def forward(self, x_NC: Tensor) -> Tensor:
        y_NC: Tensor = self.second(self.first(x_NC))
        return y_NC


class _Restless(nn.Module):
    """Draws numbers, counts its calls and drops out: everything that counting must leave alone."""

    calls: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.Dropout(0.5))
        self.body[1].eval()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x_NCHW: Tensor) -> Tensor:
        self.calls += 1
        y_NCHW: Tensor = self.body(x_NCHW)
        return y_NCHW + torch.rand_like(y_NCHW)


class _Broken(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError("broken on purpose")


def test_count_parameters_of_a_linear_layer() -> None:
    assert count_parameters(nn.Linear(10, 11)) == 121


def test_count_parameters_includes_bare_weights() -> None:
    assert count_parameters(_WithBareWeights()) == 121 + 5


def test_count_parameters_counts_a_shared_module_once() -> None:
    assert count_parameters(_UsedTwice()) == 64


@pytest.mark.parametrize("build", [_WithBareWeights, _UsedTwice, _Restless, lambda: nn.LSTM(3, 4)])
def test_count_parameters_equals_the_sum_over_parameters(build: Callable[[], nn.Module]) -> None:
    model = build()
    assert count_parameters(model) == sum(weight.numel() for weight in model.parameters())


@pytest.mark.parametrize(
    ("build", "input_shape", "expected"),
    [
        (lambda: nn.Linear(10, 11), (10,), 110),
        (lambda: nn.Conv2d(3, 8, 3, padding=1), (3, 8, 8), 64 * 8 * 27),
        (lambda: nn.Conv2d(8, 8, 3, padding=1, groups=8), (8, 4, 4), 16 * 8 * 9),
        (lambda: nn.Conv2d(3, 8, 3, stride=2), (3, 9, 9), 16 * 8 * 27),
        (_WithBareWeights, (10,), 110),
        (_UsedTwice, (8,), 2 * 64),
        (lambda: nn.Sequential(nn.BatchNorm2d(3), nn.ReLU(), nn.AvgPool2d(2)), (3, 8, 8), 0),
        (lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), (5, 16), 11_040),
        (lambda: nn.LSTM(8, 16, batch_first=True), (5, 8), 5 * (8 + 16) * 64),
    ],
    ids=["linear", "conv", "depthwise", "strided", "bare", "shared", "free", "attention", "lstm"],
)
def test_count_multiply_adds_is_exact(
    build: Callable[[], nn.Module], input_shape: tuple[int, ...], expected: int
) -> None:
    assert count_multiply_adds(build(), input_shape) == expected


def test_count_multiply_adds_of_an_embedding_takes_integers() -> None:
    model = nn.Sequential(nn.Embedding(100, 4), nn.Linear(4, 6))
    assert count_multiply_adds(model, (7,), dtype=torch.long) == 7 * 24


def test_count_multiply_adds_leaves_the_model_and_the_generator_alone() -> None:
    model = _Restless()
    flags = [module.training for module in model.modules()]
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    random_state = torch.get_rng_state()
    assert count_multiply_adds(model, (1, 4, 4)) == 16 * 2 * 9
    assert [module.training for module in model.modules()] == flags
    assert all(torch.equal(state[name], tensor) for name, tensor in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(weight.grad is None for weight in model.parameters())


def test_count_multiply_adds_restores_training_flags_after_an_error() -> None:
    model = nn.Sequential(_Broken())
    with pytest.raises(RuntimeError, match="broken on purpose"):
        count_multiply_adds(model, (1,))
    assert model.training
    assert model[0].training


def test_counts_of_a_network_without_memory_are_the_same() -> None:
    with torch.device("meta"):
        weightless = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8))
    assert count_parameters(weightless) == 3 * 8 * 9 + 8 + 16
    assert count_multiply_adds(weightless, (3, 8, 8)) == 64 * 8 * 27


def test_costs_of_a_chain_are_those_of_arithmetic() -> None:
    model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 3))
    found = costs(model, torch.rand(1, 10))
    assert (found.parameters, found.multiply_adds) == (220 + 63, 200 + 60)
    assert found.weight_bytes == 4 * (220 + 63)
    # The input for the first layer's weights, and the ReLU's answer for itself and for the second layer.
    assert found.activation_bytes == 4 * (10 + 20)
    assert found.latency_ms is None
    timed = costs(model, torch.rand(1, 10), latency_of=2)
    assert timed.latency_ms is not None and timed.latency_ms > 0.0


def test_costs_of_parts_add_up_to_the_whole() -> None:
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.Sequential(nn.ReLU(), nn.Conv2d(4, 2, 1)), nn.Flatten())
    parts = costs_of_parts(model, torch.empty(1, 1, 6, 6, device="meta"))
    assert [(part.name, part.kind) for part in parts] == [("0", "Conv2d"), ("1", "Sequential"), ("2", "Flatten")]
    assert [part.multiply_adds for part in parts] == [36 * 4 * 9, 36 * 8, 0]
    assert sum(part.parameters for part in parts) == count_parameters(model)


@pytest.mark.parametrize("name", catalog.available())
def test_real_pass_of_every_space_counts_what_shapes_count(name: str) -> None:
    module = catalog.load(name)
    configuration, shape = module.SPACE.defaults, EXAMPLE_SHAPES[module.SPACE.task]
    assert configuration is not None
    model = module.build_model(module.SPACE.plain(configuration), shape, EXAMPLE_OUTPUTS)
    inputs = example_inputs(shape, 1)
    assert try_and_count_multiply_adds(model, *inputs) == count_multiply_adds_of(model, *inputs) > 0


class _Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x_NLC: Tensor) -> Tensor:
        x_NLC = self.attention(x_NLC, x_NLC, x_NLC, need_weights=False)[0]
        return nn.functional.scaled_dot_product_attention(x_NLC, x_NLC, x_NLC, is_causal=True)


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 11_040),
        (_Attention, 5 * 16 * 64 + 4 * 5 * 5 * 16),
        (lambda: nn.LSTM(16, 8, num_layers=2, bidirectional=True, batch_first=True), 2 * 2 * 5 * (16 + 8) * 32),
    ],
    ids=["encoder layer", "attention", "lstm"],
)
def test_real_pass_counts_what_fused_kernels_multiply(build: Callable[[], nn.Module], expected: int) -> None:
    fast = torch.backends.mha.get_fastpath_enabled()
    model = build()
    assert try_and_count_multiply_adds(model, torch.rand(1, 5, 16)) == expected
    assert count_multiply_adds(model, (5, 16)) == expected
    assert torch.backends.mha.get_fastpath_enabled() == fast


@pytest.mark.parametrize("name", catalog.available())
def test_costs_of_every_space_are_exact(name: str) -> None:
    module = catalog.load(name)
    configuration, shape = module.SPACE.defaults, EXAMPLE_SHAPES[module.SPACE.task]
    assert configuration is not None
    with torch.device("meta"):
        model = module.build_model(module.SPACE.plain(configuration), shape, EXAMPLE_OUTPUTS)
    inputs = example_inputs(shape, 1)
    found = costs(model, *inputs)
    assert found.parameters == sum(weight.numel() for weight in model.parameters()) > 0
    assert found.activation_bytes > 0
    parts = costs_of_parts(model, *inputs)
    assert sum(part.multiply_adds for part in parts) <= found.multiply_adds


@pytest.mark.parametrize(
    "shape",
    [(3, 4, 5), TextShape(length=7, vocabulary=11), TableShape(numbers=2), TableShape(numbers=0, categories=(3,))],
)
def test_example_inputs_are_of_their_shape(shape: InputShape) -> None:
    inputs = example_inputs(shape, 6, torch.Generator().manual_seed(1))
    assert all(len(part) == 6 for part in inputs)
    again = example_inputs(shape, 6, torch.Generator().manual_seed(1))
    assert all(torch.equal(part, other) for part, other in zip(inputs, again, strict=True))
    sizes = [tuple(shape)] if type(shape) is tuple else [(7,)]
    if isinstance(shape, TableShape):
        sizes = [(shape.numbers,), (len(shape.categories),)]
    assert [tuple(part.shape[1:]) for part in inputs] == sizes
