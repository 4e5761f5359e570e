import pytest
import torch
from torch import nn

from trainers.config import TrainConfig
from trainers.distributed import Ranks
from trainers.optimization import Optimization
from trainers.optimizers import build_optimizer, parameter_groups
from trainers.parallel.replicas import Replicas
from trainers.precision import MixedPrecision, UsedPrecision
from trainers.problem import Batch
from trainers.schedules import build_schedule

CPU = torch.device("cpu")


class Scale(nn.Module):
    """One weight; the answer is the input times it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(1, 1, bias=False)
        nn.init.ones_(self.linear.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.linear(x)
        return y


def optimization_of(
    network: nn.Module, used: UsedPrecision, learning_rate: float = 1.0, clip: float = 0.0
) -> Optimization:
    precision = MixedPrecision(used, CPU)
    example = Batch((torch.ones(1, 1),), torch.zeros(1))
    return Optimization(
        Replicas(network, Ranks.alone(CPU), precision, example, 1),
        torch.optim.SGD(network.parameters(), lr=learning_rate),
        precision,
        build_schedule(TrainConfig(learning_rate=learning_rate, warmup_fraction=0.0), total_steps=4),
        gradient_clip=clip,
    )


@pytest.mark.parametrize("clip", [0.0, 1.0])
def test_skipped_steps_are_counted_and_move_neither_schedule_nor_weights(clip: float) -> None:
    network = Scale()
    optimization = optimization_of(network, "fp16", clip=clip)
    made = []
    for gradient in (float("inf"), float("nan"), 1.0):
        before = network.linear.weight.item()
        optimization.backward((network.linear.weight * gradient).sum(), 1.0)
        made.append(optimization.step())
        assert (network.linear.weight.item() != before) == made[-1]
    assert made == [False, False, True]
    assert (optimization.skipped_steps, optimization.steps_made) == (2, 1)
    assert optimization.last_learning_rate == optimization.learning_rate_at(0)
    optimization.backward(network.linear.weight.sum(), 1.0)
    optimization.step()
    assert optimization.last_learning_rate == optimization.learning_rate_at(1)


def test_fp16_moves_a_weight_whose_gradient_halves_cannot_hold() -> None:
    moved = {}
    for scaled in (False, True):
        network = Scale()
        precision = MixedPrecision("fp16", CPU)
        optimizer = torch.optim.SGD(network.parameters(), lr=1e7)
        with precision.autocast():
            answer = network(torch.ones(1, 1))
        assert answer.dtype == torch.float16
        loss = answer.float().sum() * 1e-8
        (precision.scale(loss) if scaled else loss).backward()
        if scaled:
            precision.step(optimizer)
        else:
            optimizer.step()
        moved[scaled] = network.linear.weight.item() != 1.0
    assert moved == {False: False, True: True}


@pytest.mark.parametrize("used", ["fp32", "bf16", "fp16"])
def test_clipping_bounds_the_true_gradient_norm(used: UsedPrecision) -> None:
    network = Scale()
    optimization = optimization_of(network, used, learning_rate=0.25, clip=0.5)
    optimization.backward((network.linear.weight * 100.0).sum(), 1.0)
    assert optimization.step()
    assert network.linear.weight.item() == pytest.approx(1.0 - 0.25 * 0.5, abs=1e-4)


def test_gradients_are_forgotten_after_a_step() -> None:
    network = Scale()
    optimization = optimization_of(network, "fp32")
    optimization.backward(network.linear.weight.sum(), 1.0)
    optimization.step()
    assert network.linear.weight.grad is None


def test_only_matrices_and_kernels_decay() -> None:
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Linear(2, 2))
    decaying, exempt = parameter_groups(network, 0.1)
    assert decaying["weight_decay"] == 0.1 and exempt["weight_decay"] == 0.0
    assert [tuple(weight.shape) for weight in decaying["params"]] == [(2, 1, 3, 3), (2, 2)]
    assert all(weight.dim() == 1 for weight in exempt["params"])


def test_network_without_weights_is_refused() -> None:
    with pytest.raises(ValueError, match="no trainable weight"):
        build_optimizer(nn.ReLU(), TrainConfig())


@pytest.mark.parametrize(
    ("name", "kind"), [("sgd", torch.optim.SGD), ("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)]
)
def test_optimizers_by_name(name: str, kind: type[torch.optim.Optimizer]) -> None:
    optimizer = build_optimizer(nn.Linear(2, 2), TrainConfig.model_validate({"optimizer": name}))
    assert type(optimizer) is kind
    if name == "sgd":
        assert optimizer.defaults["nesterov"] and optimizer.defaults["momentum"] == 0.9
