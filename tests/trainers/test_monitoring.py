"""What a training tells of its inside: measurements of every epoch, a line of the log, and no change of the result."""

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch

from tests.trainers.rank_pool import RankPool
from tests.trainers.training import Script, assert_same_tensors, last_checkpoint, timeless, tiny_task
from trainers.config import TrainTask
from trainers.data.arrays import ImageData
from trainers.device_load import CpuLoad, GpuLoad, load_of
from trainers.distributed import Ranks
from trainers.epoch_log import epoch_line
from trainers.monitoring import CLOCK_METRICS, Monitor
from trainers.reporting import Report, TrialResult
from trainers.tasks import load_trainer

trainer = load_trainer("image_classification")
ALONE = Ranks.alone("cpu")
CPU = torch.device("cpu")
WAIT_S = 0.05


def fit(ranks: Ranks, task: TrainTask, data: ImageData) -> tuple[TrialResult, list[Report]]:
    script = Script()
    return trainer.fit(task, data, ranks, script), script.reports


def test_every_epoch_tells_time_load_and_gradient(few_digits: ImageData, tmp_path: Path) -> None:
    result, reports = fit(ALONE, tiny_task(tmp_path, epochs=2), few_digits)
    for report in reports:
        metrics = report.metrics
        assert set(metrics) > CLOCK_METRICS | {"gradient_norm", "skipped_steps"}
        assert 0.0 < metrics["step_ms"] < 1000.0 * metrics["epoch_s"]
        assert 0.0 <= metrics["data_wait_share"] <= 1.0
        assert metrics["gradient_norm"] > 0.0
        assert metrics["skipped_steps"] == 0.0
        assert 1.0 < metrics["memory_mib"] <= result.facts["device_memory_mib"]  # type: ignore[operator]  # a number
    expected, real = result.facts["estimated_epoch_s"], result.facts["epoch_s"]
    assert isinstance(expected, float) and isinstance(real, float)
    assert 0.1 * real < expected < 10.0 * real, "four steps of a millisecond are told roughly"
    assert "warnings" not in result.facts


def test_gradient_norm_does_not_depend_on_the_number_of_ranks(
    few_digits: ImageData, tmp_path: Path, pair: RankPool
) -> None:
    replies = pair.run(fit, tiny_task(tmp_path / "pair", {"norm": "none"}), few_digits)
    _, alone = fit(ALONE, tiny_task(tmp_path / "alone", {"norm": "none"}), few_digits)
    ours = [report.metrics["gradient_norm"] for report in replies[0][1]]
    assert ours == pytest.approx([report.metrics["gradient_norm"] for report in alone], rel=1e-3)


def test_looking_into_a_training_does_not_change_it(few_digits: ImageData, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    seen, plain = tmp_path / "seen", tmp_path / "plain"
    task = tiny_task(seen, {"dropout": 0.3}, augmentation=0.5)
    _, looked_at = fit(ALONE, task.model_copy(update={"tensorboard": "board", "profile": True}), few_digits)
    _, alone = fit(ALONE, tiny_task(plain, {"dropout": 0.3}, augmentation=0.5), few_digits)
    assert [timeless(report) for report in looked_at] == [timeless(report) for report in alone]
    assert_same_tensors(dict(last_checkpoint(seen).network), dict(last_checkpoint(plain).network))
    assert_same_tensors(dict(last_checkpoint(seen).optimization), dict(last_checkpoint(plain).optimization))


def test_log_has_a_line_for_each_epoch(few_digits: ImageData, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="trainers"):
        fit(ALONE, tiny_task(tmp_path, epochs=2), few_digits)
    lines = [record.getMessage() for record in caplog.records if record.name == "trainers.epoch_log"]
    assert [line.split(" loss ")[0] for line in lines] == ["epoch 1/2", "epoch 2/2"]


def test_line_of_an_epoch_has_its_numbers_with_units() -> None:
    class Load(CpuLoad):
        memory_limit_bytes = 8 * 2**30

        def __init__(self) -> None:
            self.name = "gpu"  # type: ignore[assignment]  # as a GPU has it

    metrics = {"train_loss": 0.45213, "learning_rate": 1e-3, "memory_mib": 7.1 * 2**10, "utilisation_percent": 85.2}
    assert epoch_line(10, 100, metrics, Load()) == "epoch 10/100 loss 0.4521 lr 0.001 gpu 85 % mem 7.1/8.0 GiB"
    del metrics["utilisation_percent"]
    assert epoch_line(10, 100, metrics, Load()) == "epoch 10/100 loss 0.4521 lr 0.001 mem 7.1/8.0 GiB"


def waiting(times: int) -> Iterator[int]:
    for index in range(times):
        threading.Event().wait(WAIT_S)  # as for a process that reads the items
        yield index


def computing(times: int) -> Iterator[int]:
    for index in range(times):
        until = time.thread_time() + WAIT_S
        while time.thread_time() < until:
            pass
        yield index


def measured(batches: Iterator[int]) -> dict[str, float]:
    monitor = Monitor(CPU)
    monitor.begin(3)
    for _ in monitor.timed(batches):
        monitor.step_done()
    return monitor.end()


def test_data_that_are_waited_for_are_told_from_data_that_are_made() -> None:
    assert measured(waiting(3))["data_wait_share"] > 0.8
    assert measured(computing(3))["data_wait_share"] < 0.8, "a CPU that makes its batches is not idle"
    assert measured(waiting(3))["step_ms"] == pytest.approx(1000.0 * WAIT_S, rel=1.0)


def test_long_epoch_is_announced_by_its_first_steps(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    monkeypatch.setattr("trainers.monitoring.time.perf_counter", lambda: now[0])
    monitor = Monitor(CPU)
    monitor.begin(500)
    with caplog.at_level(logging.INFO, logger="trainers"):
        for seconds in (7.0, 1.0, 1.0, 1.0):
            now[0] += seconds
            monitor.step_done()
    assert monitor.estimated_training_s == 500.0, "the first step, which took 7 s, is left out"
    assert caplog.messages == ["an epoch of 500 steps will train for about 500 s"]


def test_peak_of_a_cpu_is_that_of_this_training_and_not_of_an_earlier_one() -> None:
    torch.ones(100 * 2**18).sum()  # 100 MiB that are given back
    load = load_of(CPU)
    before = load.peak_memory_bytes()
    torch.ones(200 * 2**18).sum()
    grown = load.peak_memory_bytes() - before
    assert load.name == "cpu"
    assert 0 < load.memory_bytes() < load.memory_limit_bytes
    assert load.available_bytes() == pytest.approx(load.memory_limit_bytes - load.memory_bytes(), abs=2**20)
    assert 150 * 2**20 < grown < 250 * 2**20


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_steps_of_a_gpu_are_timed_by_its_own_clock() -> None:
    device = torch.device("cuda", 0)
    monitor = Monitor(device)
    assert isinstance(monitor.load, GpuLoad)
    monitor.begin(3)
    for _ in monitor.timed(iter(range(3))):
        torch.ones(2**20, device=device).sum()
        monitor.step_done()
    measured: Sequence[str] = list(monitor.end())
    assert {"step_ms", "memory_mib", "data_wait_share"} <= set(measured)
