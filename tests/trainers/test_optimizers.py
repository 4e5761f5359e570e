"""What one step of each optimizer does, against steps written out here."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, TypeAlias, cast, get_args

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tests.trainers.training import assert_same_tensors
from trainers.config import OptimizerName, TrainConfig
from trainers.optimizers import build_optimizer
from trainers.optimizers.hidden_matrices import hidden_matrices
from trainers.optimizers.lion import Lion
from trainers.optimizers.muon import Muon, orthogonal_direction

Array: TypeAlias = npt.NDArray[np.float64]
Memory: TypeAlias = dict[str, Array]
NAMES = get_args(OptimizerName)
RATE, DECAY, MOMENTUM = 0.01, 0.1, 0.8


def training(name: OptimizerName, **settings: Any) -> TrainConfig:
    return TrainConfig(optimizer=name, learning_rate=RATE, weight_decay=DECAY, momentum=MOMENTUM, **settings)


def network_of(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 5), nn.ReLU(), nn.Linear(5, 3))


def set_gradients(network: nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for weight in network.parameters():
        weight.grad = torch.randn(weight.shape, generator=generator)


def sgd_step(weight: Array, gradient: Array, memory: Memory, decay: float, step: int) -> Array:
    gradient = gradient + decay * weight
    memory["velocity"] = gradient + MOMENTUM * memory["velocity"] if memory else gradient
    return weight - RATE * (gradient + MOMENTUM * memory["velocity"])


def adam_direction(gradient: Array, memory: Memory, step: int) -> Array:
    memory["mean"] = 0.9 * memory.get("mean", 0.0) + 0.1 * gradient
    memory["square"] = 0.999 * memory.get("square", 0.0) + 0.001 * gradient**2
    mean, square = memory["mean"] / (1 - 0.9**step), memory["square"] / (1 - 0.999**step)
    direction: Array = mean / (np.sqrt(square) + 1e-8)
    return direction


def adam_step(weight: Array, gradient: Array, memory: Memory, decay: float, step: int) -> Array:
    return weight - RATE * adam_direction(gradient + decay * weight, memory, step)


def adamw_step(weight: Array, gradient: Array, memory: Memory, decay: float, step: int) -> Array:
    return weight - RATE * decay * weight - RATE * adam_direction(gradient, memory, step)


def rmsprop_step(weight: Array, gradient: Array, memory: Memory, decay: float, step: int) -> Array:
    gradient = gradient + decay * weight
    memory["square"] = 0.99 * memory.get("square", 0.0) + 0.01 * gradient**2
    memory["velocity"] = MOMENTUM * memory.get("velocity", 0.0) + gradient / (np.sqrt(memory["square"]) + 1e-8)
    return weight - RATE * memory["velocity"]


def lion_step(weight: Array, gradient: Array, memory: Memory, decay: float, step: int) -> Array:
    momentum = memory.get("momentum", np.zeros_like(weight))
    direction = np.sign(0.9 * momentum + 0.1 * gradient)
    memory["momentum"] = 0.99 * momentum + 0.01 * gradient
    return weight - RATE * (direction + decay * weight)


def muon_step(weight: Array, gradient: Array, memory: Memory, decay: float, step: int) -> Array:
    """Of hidden matrices and kernels; the last layer and biases move by AdamW."""
    if weight.ndim == 1 or weight.shape == (3, 5):
        return adamw_step(weight, gradient, memory, decay, step)
    memory["momentum"] = MOMENTUM * memory.get("momentum", 0.0) + (1 - MOMENTUM) * gradient
    x = ((1 - MOMENTUM) * gradient + MOMENTUM * memory["momentum"]).reshape(len(weight), -1)
    x = x / np.sqrt((x**2).sum())
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    moved: Array = weight - RATE * decay * weight - RATE * 0.2 * np.sqrt(max(x.shape)) * x.reshape(weight.shape)
    return moved


STEPS: Mapping[OptimizerName, Callable[[Array, Array, Memory, float, int], Array]] = {
    "sgd": sgd_step,
    "adam": adam_step,
    "adamw": adamw_step,
    "rmsprop": rmsprop_step,
    "lion": lion_step,
    "muon": muon_step,
}


@pytest.mark.parametrize("name", NAMES)
def test_three_steps_are_those_written_out(name: OptimizerName) -> None:
    network = network_of()
    optimizer = build_optimizer(network, training(name))
    expected = [weight.detach().double().numpy().copy() for weight in network.parameters()]
    memories: list[Memory] = [{} for _ in expected]
    for step in (1, 2, 3):
        set_gradients(network, seed=step)
        optimizer.step()
        for index, weight in enumerate(network.parameters()):
            assert weight.grad is not None
            decay = DECAY if weight.dim() > 1 else 0.0
            gradient = weight.grad.double().numpy()
            expected[index] = STEPS[name](expected[index], gradient, memories[index], decay, step)
    for weight, value in zip(network.parameters(), expected, strict=True):
        np.testing.assert_allclose(weight.detach().numpy(), value, rtol=0.0, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_every_optimizer_learns_a_line(name: OptimizerName) -> None:
    network = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(64, 2, generator=generator)
    wanted = inputs @ torch.tensor([[1.0], [-0.5]])
    optimizer = build_optimizer(network, TrainConfig(optimizer=name, learning_rate=0.01, weight_decay=0.0))
    losses = []
    for _ in range(100):
        loss = (network(inputs) - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]


@pytest.mark.parametrize("name", NAMES)
def test_without_gradients_matrices_move_towards_zero_and_biases_stay(name: OptimizerName) -> None:
    network = network_of()
    before = [weight.detach().clone() for weight in network.parameters()]
    optimizer = build_optimizer(network, training(name))
    for weight in network.parameters():
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    for weight, old in zip(network.parameters(), before, strict=True):
        if weight.dim() == 1:
            torch.testing.assert_close(weight.detach(), old, rtol=0.0, atol=0.0)
        else:
            assert ((old - weight) * old > 0.0).all()


@pytest.mark.parametrize("name", NAMES)
def test_weights_without_a_gradient_stay_and_frozen_ones_are_left_out(name: OptimizerName) -> None:
    network = network_of()
    first, last = cast(nn.Conv2d, network[0]), cast(nn.Linear, network[-1])
    first.weight.requires_grad_(False)
    before = last.weight.detach().clone()
    optimizer = build_optimizer(network, training(name))
    assert sum(len(group["params"]) for group in optimizer.param_groups) == 5
    set_gradients(network, seed=1)
    last.weight.grad = None
    assert optimizer.step(lambda: 0.25) == 0.25
    assert torch.equal(last.weight.detach(), before)


@pytest.mark.parametrize("name", NAMES)
def test_loaded_state_goes_on_to_the_last_bit(name: OptimizerName) -> None:
    networks = [network_of(), network_of()]
    optimizers = [build_optimizer(network, training(name)) for network in networks]
    set_gradients(networks[0], seed=1)
    optimizers[0].step()
    networks[1].load_state_dict(networks[0].state_dict())
    optimizers[1].load_state_dict(deepcopy(optimizers[0].state_dict()))  # loading does not copy
    for network, optimizer in zip(networks, optimizers, strict=True):
        set_gradients(network, seed=2)
        optimizer.step()
    assert_same_tensors(dict(networks[0].state_dict()), dict(networks[1].state_dict()))


def test_without_momentum_sgd_is_plain_descent() -> None:
    network = nn.Linear(2, 2)
    before = network.weight.detach().clone()
    optimizer = build_optimizer(network, TrainConfig(optimizer="sgd", momentum=0.0, weight_decay=0.0, learning_rate=1))
    set_gradients(network, seed=3)
    optimizer.step()
    assert network.weight.grad is not None
    torch.testing.assert_close(network.weight.detach(), before - network.weight.grad)


def test_lion_moves_every_weight_alike_and_stays_where_nothing_pulls() -> None:
    weight = nn.Parameter(torch.tensor([1.0, 1.0, 1.0]))
    weight.grad = torch.tensor([1e-6, -1e6, 0.0])
    Lion([weight], lr=0.5).step()
    assert weight.tolist() == [0.5, 1.5, 1.0]


def test_muon_is_torchs_up_to_the_rounding_of_bfloat16() -> None:
    weights = [nn.Parameter(torch.randn(6, 9, generator=torch.Generator().manual_seed(4))) for _ in range(2)]
    ours = Muon([{"params": [weights[0]], "is_orthogonal": True}], lr=0.1, weight_decay=0.1, momentum=0.9)
    theirs = torch.optim.Muon([weights[1]], lr=0.1, momentum=0.9, adjust_lr_fn="match_rms_adamw")
    for seed in range(3):
        gradient = torch.randn(6, 9, generator=torch.Generator().manual_seed(seed))
        for weight, optimizer in zip(weights, (ours, theirs), strict=True):
            weight.grad = gradient.clone()
            optimizer.step()
    torch.testing.assert_close(weights[0].detach(), weights[1].detach(), rtol=0.0, atol=0.01)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 1000), st.floats(1e-3, 1e3))
def test_direction_is_nearly_orthogonal_and_turns_and_scales_with_its_matrix(
    rows: int, columns: int, seed: int, scale: float
) -> None:
    left, _ = torch.linalg.qr(torch.randn(rows, rows, generator=torch.Generator().manual_seed(seed)))
    right, _ = torch.linalg.qr(torch.randn(columns, columns, generator=torch.Generator().manual_seed(seed + 1)))
    small = min(rows, columns)
    matrix = left[:, :small] @ torch.diag(torch.linspace(1.0, 0.3, small)) @ right[:small]
    direction = orthogonal_direction(matrix)
    values = torch.linalg.svdvals(direction)
    assert 0.6 < values.min() and values.max() < 1.25
    assert (direction * (left[:, :small] @ right[:small])).sum() > 0.6 * small
    torch.testing.assert_close(orthogonal_direction(matrix.T), direction.T, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(orthogonal_direction(matrix * scale), direction, rtol=1e-3, atol=1e-4)


def test_direction_of_nothing_is_nothing() -> None:
    assert torch.equal(orthogonal_direction(torch.zeros(3, 4)), torch.zeros(3, 4))


class Words(nn.Module):
    """Layers of each kind; the last one shares the embedding's weight where it is told to."""

    def __init__(self, ties: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.position = nn.Parameter(torch.zeros(5, 4))
        self.attention = nn.MultiheadAttention(4, 2)
        self.norm = nn.LayerNorm((2, 2))
        self.depthwise = nn.Conv1d(4, 4, 3, groups=4)
        self.pointwise = nn.Conv1d(4, 6, 1)
        self.frozen = nn.Linear(4, 4).requires_grad_(False)
        self.inner = nn.Linear(6, 4, bias=False)
        self.head = nn.Linear(4, 7)
        if ties:
            self.inner.weight = nn.Parameter(torch.zeros(4, 6))
            self.head.weight = self.embedding.weight


@pytest.mark.parametrize("ties", [False, True])
def test_hidden_matrices_are_those_of_maps_but_the_last(ties: bool) -> None:
    network = Words(ties)
    chosen = {id(weight) for weight in hidden_matrices(network)}
    assert [name for name, weight in network.named_parameters() if id(weight) in chosen] == [
        "attention.in_proj_weight",
        "attention.out_proj.weight",
        "pointwise.weight",
        "inner.weight",
    ]


def test_a_single_map_gives_the_answers_and_is_not_hidden() -> None:
    assert hidden_matrices(nn.Linear(3, 2)) == []
    optimizer = build_optimizer(nn.Linear(3, 2), training("muon"))
    assert [group["is_orthogonal"] for group in optimizer.param_groups] == [False, False]


@pytest.mark.parametrize("name", NAMES)
def test_first_step_that_fp16_skips_leaves_nothing_behind(name: OptimizerName) -> None:
    moved = []
    for gradients in ((1.0,), (float("inf"), 1.0)):
        network = nn.Sequential(nn.Linear(64, 64, bias=False), nn.Linear(64, 64, bias=False))
        nn.init.constant_(network[0].weight, 0.5)  # type: ignore[arg-type]  # a layer's weight
        nn.init.constant_(network[1].weight, 0.5)  # type: ignore[arg-type]  # likewise
        optimizer = build_optimizer(network, training(name, precision="fp16"))
        scaler = torch.amp.GradScaler("cpu")
        for gradient in gradients:
            dirt = [torch.full((64, 64), float("nan")) for _ in range(64)]
            del dirt  # memory that is given out anew holds no zeros
            for weight in network.parameters():
                weight.grad = torch.full_like(weight, gradient) * scaler.scale(torch.ones(()))
            scaler.step(optimizer)
            scaler.update()
        moved.append({key: value.clone() for key, value in network.state_dict().items()})
    assert_same_tensors(moved[0], moved[1])
