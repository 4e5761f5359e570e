from pathlib import Path

import torch
from torch import nn

from tests.trainers.training import Script, last_checkpoint, tiny_task
from trainers.data.arrays import ImageData
from trainers.distributed import Ranks
from trainers.methods.l1 import L1Penalty, add_l1_gradient
from trainers.tasks import load_trainer

trainer = load_trainer("image_classification")


def test_gradient_is_that_of_the_sum_of_absolute_values() -> None:
    weight = nn.Parameter(torch.tensor([[2.0, -0.5], [0.0, 3.0]]))
    unused = nn.Parameter(torch.ones(2, 2))
    (weight**2).sum().backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    expected = torch.autograd.grad((weight**2).sum() + 0.25 * weight.abs().sum(), weight)[0]
    add_l1_gradient([weight, unused], 0.25)
    assert weight.grad is not None and torch.equal(weight.grad, expected)
    assert unused.grad is None
    add_l1_gradient([], 0.25)


def test_biases_and_normalisation_are_not_pulled() -> None:
    network = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    for weight in network.parameters():
        weight.grad = torch.zeros_like(weight)
    L1Penalty(0.5).before_step(network)
    pulled = [name for name, weight in network.named_parameters() if weight.grad is not None and weight.grad.any()]
    assert pulled == ["0.weight"]


def test_penalty_makes_weights_smaller(few_digits: ImageData, tmp_path: Path) -> None:
    sizes = []
    for factor in (0.0, 0.003, 0.03):
        task = tiny_task(tmp_path / str(factor), l1=factor, optimizer="sgd", learning_rate=0.05, weight_decay=0.0)
        trainer.fit(task, few_digits, Ranks.alone("cpu"), Script())
        sizes.append(float(last_checkpoint(tmp_path / str(factor)).network["6.weight"].abs().sum()))
    assert sizes == sorted(sizes, reverse=True)
