"""The scores of networks that are small enough to be scored by hand."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from search_spaces.scores import explained_score, score
from search_spaces.scores.jacob_cov import K
from search_spaces.shapes import TextShape
from search_spaces.text_transformer import text_transformer_network

CLASSES = torch.tensor([0, 1])


def linear(weights: list[list[float]]) -> nn.Linear:
    layer = nn.Linear(len(weights[0]), len(weights), bias=False)
    layer.weight.data = torch.tensor(weights)
    return layer


FIRST = [[1.0, -2.0], [0.5, 3.0], [-1.0, 0.0]]
SECOND = [[2.0, -1.0, 1.0], [0.0, 1.0, -4.0]]
FLOW = float((np.abs(SECOND) @ np.abs(FIRST)).sum())
"""What the two layers pass on of ones: by each of them the derivative times the weights is the whole of it."""


@pytest.mark.parametrize(
    "between",
    [
        pytest.param([], id="a chain of linear layers"),
        pytest.param([nn.ReLU(), nn.Dropout(0.5)], id="ReLU and dropout, which change nothing"),
        pytest.param([nn.BatchNorm1d(3), nn.LayerNorm(3), nn.ReLU()], id="normalisation, which is left out"),
    ],
)
def test_synflow_of_a_chain_is_the_flow_by_each_layer(between: list[nn.Module]) -> None:
    model = nn.Sequential(linear(FIRST), *between, linear(SECOND))
    assert score("synflow", model, (torch.randn(4, 2),), torch.zeros(4).long()) == pytest.approx(2 * FLOW)


def test_synflow_depends_neither_on_the_data_nor_on_signs() -> None:
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2))
    usual = score("synflow", model, (torch.randn(4, 1, 4, 4),), torch.zeros(4).long())
    for weight in model.parameters():
        weight.data *= -1.0
    assert score("synflow", model, (torch.randn(2, 1, 4, 4),), CLASSES) == usual
    next(model.parameters()).data *= 2.0
    assert score("synflow", model, (torch.randn(2, 1, 4, 4),), CLASSES) > usual


def test_synflow_beyond_single_precision_has_a_value() -> None:
    model = nn.Sequential(*(linear([[1e6]]) for _ in range(20)))
    assert score("synflow", model, (torch.zeros(2, 1),), CLASSES) == pytest.approx(20 * 1e120, rel=1e-3)
    beyond = explained_score(
        "synflow", nn.Sequential(*(linear([[1e6]]) for _ in range(60))), (torch.zeros(2, 1),), CLASSES
    )
    assert beyond.value == -math.inf
    assert beyond.reason == "synflow: the score left the range of numbers (inf)"


def test_synflow_of_a_deep_transformer_has_a_value() -> None:
    torch.manual_seed(0)
    model = text_transformer_network(TextShape(length=12, vocabulary=50), 3, depth=6, width=192, heads=4, expansion=2)
    found = explained_score("synflow", model, (torch.randint(1, 50, (2, 12)),), CLASSES)
    assert found.reason is None
    assert found.value > 1e20, "attention weights are 0 or 1 where features are so large"


class Functional(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(x)


@pytest.mark.parametrize(
    "switch",
    [nn.ReLU(), nn.ReLU(inplace=True), nn.ReLU6(), nn.LeakyReLU(), nn.GELU(), nn.SiLU(), nn.Hardswish(), Functional()],
    ids=lambda module: repr(module),
)
def test_naswot_counts_what_two_items_switch_alike(switch: nn.Module) -> None:
    inputs = torch.tensor([[1.0, 2.0, -1.0], [3.0, -1.0, -2.0]])  # two of three alike: 3 * 3 - 2 * 2
    assert score("naswot", switch, (inputs,), CLASSES) == pytest.approx(math.log(5))
    assert inputs.tolist() == [[1.0, 2.0, -1.0], [3.0, -1.0, -2.0]]


def test_naswot_adds_up_the_counts_of_all_layers() -> None:
    model = nn.Sequential(nn.ReLU(), linear([[1.0, 0.0, -5.0], [0.0, -1.0, 0.0]]), nn.ReLU())
    inputs = torch.tensor([[1.0, 2.0, -1.0], [3.0, -1.0, -2.0]])
    # The second layer sees (1, -2) and (3, 0): both switched alike, so 4 of 5 in all.
    assert score("naswot", model, (inputs,), CLASSES) == pytest.approx(math.log(25 - 16))


def test_naswot_of_equal_items_is_none_as_the_kernel_is_singular() -> None:
    model = nn.Sequential(nn.Linear(5, 40), nn.ReLU(), nn.Linear(40, 2))
    item = torch.randn(1, 5)
    found = explained_score("naswot", model, (torch.cat([item, torch.randn(3, 5), item]),), torch.zeros(5).long())
    assert found.value == -math.inf
    assert found.reason == "naswot: the kernel is singular: the 40 ReLUs do not tell all 5 items apart"


def test_naswot_of_fewer_relus_than_items_is_none_as_the_kernel_is_singular() -> None:
    model = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 2))
    found = explained_score("naswot", model, (torch.randn(64, 5),), torch.zeros(64).long())
    assert found.reason == "naswot: the kernel is singular: the 4 ReLUs do not tell all 64 items apart"


@pytest.mark.parametrize("model", [nn.Linear(3, 2), nn.Sequential(nn.Linear(3, 2), nn.Hardtanh(), nn.Tanh())])
def test_naswot_without_a_relu_is_none(model: nn.Module) -> None:
    found = explained_score("naswot", model, (torch.randn(2, 3),), CLASSES)
    assert (found.value, found.reason) == (-math.inf, "naswot: the network has no ReLU, nor anything like it")


class Turned(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x.T).T


def test_naswot_where_items_do_not_come_first_is_none() -> None:
    found = explained_score("naswot", Turned(), (torch.randn(2, 3),), CLASSES)
    assert found.reason == "naswot: a ReLU sees (3, 2), where the first dimension should be the 2 items"


class Squares(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.square()


def test_jacob_cov_is_of_the_correlations_of_the_gradients() -> None:
    inputs = torch.tensor([[1.0, 2.0, -1.0, 0.0], [3.0, -1.0, -2.0, 1.0], [0.5, 0.5, 4.0, -3.0]])
    eigenvalues = np.linalg.eigvalsh(np.corrcoef(2.0 * inputs.numpy()))
    by_hand = -float(np.sum(np.log(eigenvalues + K) + 1.0 / (eigenvalues + K)))
    assert score("jacob_cov", Squares(), (inputs,), torch.zeros(3)) == pytest.approx(by_hand, rel=1e-3)


def test_jacob_cov_of_a_linear_network_is_as_low_as_can_be() -> None:
    found = score("jacob_cov", linear([[1.0, -2.0, 0.5]]), (torch.randn(2, 3),), torch.zeros(2))
    assert found == pytest.approx(-(math.log(2 + K) + 1 / (2 + K) + math.log(K) + 1 / K), rel=1e-3)


@pytest.mark.parametrize(
    "model, inputs, reason",
    [
        pytest.param(nn.Embedding(5, 2), torch.tensor([1, 2]), "the inputs, which are no real numbers", id="tokens"),
        pytest.param(nn.Sequential(nn.Identity()), torch.randn(2, 3), "the same in all places", id="equal gradients"),
        pytest.param(nn.Linear(3, 2), torch.full((2, 3), math.nan), None, id="odd inputs of a linear network"),
        pytest.param(Squares(), torch.full((2, 3), math.nan), "left the range of numbers", id="odd gradients"),
    ],
)
def test_jacob_cov_of_gradients_that_cannot_be_compared_is_none(
    model: nn.Module, inputs: Tensor, reason: str | None
) -> None:
    found = explained_score("jacob_cov", model, (inputs,), CLASSES)
    assert found.reason is None if reason is None else reason in str(found.reason)


X = [[1.0, 2.0], [3.0, -1.0]]
W = [0.5, -1.0]
NUMBERS = [1.0, 0.0]
ERRORS = [0.5 - 2.0 - 1.0, 1.5 + 1.0 - 0.0]
GRADIENT = [sum(error * item[column] for error, item in zip(ERRORS, X, strict=True)) for column in range(2)]
"""Of the mean squared error of two items by W: 2 / 2 * sum(error * x)."""


def test_gradient_norm_and_snip_of_numbers_by_hand() -> None:
    batch = linear([W]), (torch.tensor(X),), torch.tensor(NUMBERS)
    assert score("gradient_norm", *batch) == pytest.approx(math.hypot(*GRADIENT))
    assert score("snip", *batch) == pytest.approx(sum(abs(w * g) for w, g in zip(W, GRADIENT, strict=True)))


def test_gradient_norm_of_classes_by_hand() -> None:
    model = linear([[0.0, 0.0], [0.0, 0.0]])  # both classes equally likely: the gradient is (1/2 - is_class) * x / N
    by_hand = [(-1.0 * X[0][column] + 1.0 * X[1][column]) / 4 for column in range(2)]
    batch = model, (torch.tensor(X),)
    assert score("gradient_norm", *batch, CLASSES) == pytest.approx(math.sqrt(2) * math.hypot(*by_hand))
    shares = functional.one_hot(CLASSES, 2).float()
    assert score("gradient_norm", *batch, shares) == pytest.approx(score("gradient_norm", *batch, CLASSES))
    assert score("snip", *batch, CLASSES) == 0.0


def test_gradient_norm_adds_up_the_norms_of_layers_and_leaves_out_what_is_frozen() -> None:
    model = nn.Sequential(linear(FIRST), linear([[1.0, 1.0, 1.0]]))
    batch = (torch.tensor(X),), torch.tensor(NUMBERS)
    whole = score("gradient_norm", model, *batch)
    model[1].requires_grad_(False)
    first = score("gradient_norm", model, *batch)
    model.requires_grad_(True)[0].requires_grad_(False)
    assert whole == pytest.approx(first + score("gradient_norm", model, *batch))


@pytest.mark.parametrize("name", ["gradient_norm", "snip", "synflow"])
def test_scores_of_gradients_without_a_trained_kernel_are_none(name: str) -> None:
    found = explained_score(name, nn.Linear(3, 2).requires_grad_(False), (torch.randn(2, 3),), CLASSES)
    assert (found.value, found.reason) == (-math.inf, f"{name}: no weight of two dimensions or more is trained")


def test_parameters_count_a_shared_weight_once() -> None:
    shared = nn.Linear(3, 3)
    assert score("parameters", nn.Sequential(shared, shared), (torch.randn(2, 3),), CLASSES) == 12.0


class Single(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        answers: Tensor = self.layer(x @ torch.eye(3))
        return answers


def test_synflow_of_a_network_that_insists_on_single_precision_is_none() -> None:
    found = explained_score("synflow", Single(), (torch.randn(2, 3),), CLASSES)
    assert found.value == -math.inf
    assert str(found.reason).startswith("synflow: the network does not compute in double precision: ")
