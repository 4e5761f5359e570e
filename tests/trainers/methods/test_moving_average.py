from pathlib import Path

import pytest
import torch
from torch import nn

from tests.trainers.rank_pool import RankPool
from tests.trainers.training import Script, evaluation_of, last_checkpoint, tiny_task
from trainers.config import TrainTask
from trainers.data.arrays import ImageData
from trainers.distributed import Ranks
from trainers.methods.moving_average import MovingAverage, decay_at
from trainers.reporting import Report
from trainers.tasks import load_trainer

trainer = load_trainer("image_classification")
ALONE = Ranks.alone("cpu")


def step(network: nn.Module, average: MovingAverage, value: float) -> None:
    with torch.no_grad():
        for weight in network.parameters():
            weight.fill_(value)
    average.after_step(network)


def first(network: nn.Module) -> float:
    return float(next(network.parameters()).detach().reshape(-1)[0])


def test_decay_rises_to_its_value() -> None:
    decays = [decay_at(updates, 0.9) for updates in (0, 8, 80, 1000)]
    assert decays == pytest.approx([0.1, 0.5, 0.9, 0.9])


def test_average_is_exponential_and_begins_with_the_first_step() -> None:
    network, average = nn.Linear(2, 2), MovingAverage(0.5)
    expected = 3.0
    step(network, average, 3.0)
    for updates, value in enumerate([1.0, -2.0, 5.0], start=1):
        step(network, average, value)
        expected = (kept := min(0.5, (1 + updates) / (10 + updates))) * expected + (1.0 - kept) * value
    assert first(network) == 5.0
    with average.averaged(network):
        assert first(network) == pytest.approx(expected, rel=1e-6)
    assert first(network) == 5.0


def test_weights_come_back_after_an_error_and_before_any_step_there_is_nothing_to_exchange() -> None:
    network, average = nn.Linear(1, 1), MovingAverage(0.9)
    before = first(network)
    with average.averaged(network):
        assert first(network) == before
    step(network, average, 1.0)
    step(network, average, 2.0)
    with pytest.raises(ValueError, match="on the way"), average.averaged(network):
        assert first(network) != 2.0
        raise ValueError("on the way")
    assert first(network) == 2.0


def test_statistics_are_averaged_and_counts_are_those_in_use() -> None:
    network, average = nn.BatchNorm1d(1), MovingAverage(0.5)
    network.train()
    for value in (0.0, 10.0):
        network(torch.tensor([[value], [value + 1.0]]))
        average.after_step(network)
    assert network.running_mean is not None and network.num_batches_tracked is not None
    in_use = float(network.running_mean)
    with average.averaged(network):
        assert float(network.running_mean) < in_use and int(network.num_batches_tracked) == 2


def test_checkpoint_keeps_the_averages_and_the_weights_in_training(few_digits: ImageData, tmp_path: Path) -> None:
    for name, ema in (("averaged", 0.9), ("plain", 0.0)):
        trainer.fit(tiny_task(tmp_path / name, ema=ema, epochs=1), few_digits, ALONE, Script())
    averaged, plain = last_checkpoint(tmp_path / "averaged"), last_checkpoint(tmp_path / "plain")
    assert plain.optimization["weights"] is None
    assert averaged.optimization["methods"]["MovingAverage"] == {"updates": averaged.optimization["steps_made"]}
    for name, weight in plain.network.items():
        assert torch.equal(averaged.optimization["weights"][name], weight)  # averages do not change the training
    assert not torch.equal(averaged.network["0.weight"], plain.network["0.weight"])


def fit(ranks: Ranks, task: TrainTask, data: ImageData) -> list[Report]:
    script = Script()
    trainer.fit(task, data, ranks, script)
    return script.reports


def test_averaged_statistics_of_two_ranks_are_equal_and_kept(
    pair: RankPool, few_digits: ImageData, tmp_path: Path
) -> None:
    task = tiny_task(tmp_path, {"norm": "batch"}, ema=0.8, batch_size=16)
    reports, _ = pair.run(fit, task, few_digits)
    for name, value in trainer.evaluate(evaluation_of(task), few_digits, ALONE).items():
        assert reports[-1].metrics[name] == pytest.approx(value, abs=1e-6)
