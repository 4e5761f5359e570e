"""Two real processes with gloo: what they do together equals what one does alone."""

import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from search_spaces.configuration import JsonScalar
from tests.trainers.rank_pool import RankPool
from tests.trainers.training import (
    SMOOTH,
    assert_same_course,
    assert_same_tensors,
    evaluation_of,
    fit,
    last_checkpoint,
    tiny_task,
    two_classes,
)
from trainers.checkpoint import read_checkpoint
from trainers.config import EvaluateTask, TrainTask
from trainers.data.arrays import ImageData
from trainers.distributed import Ranks
from trainers.distributed import _told_apart as told_apart
from trainers.errors import NonFiniteLossError, PeerFailedError, RanksDivergedError
from trainers.reporting import Decision, Report, TrialResult
from trainers.tasks import load_trainer

trainer = load_trainer("image_classification")


@pytest.mark.parametrize(
    "settings",
    [
        {"batch_size": 32},
        {"batch_size": 30, "accumulate": 4, "augmentation": 1.0},
        {"batch_size": 1, "epochs": 1},
        {"batch_size": 32, "precision": "fp16"},
    ],
    ids=["plain", "accumulated", "a rank without items", "fp16"],
)
def test_two_ranks_equal_one(pair: RankPool, few_digits: ImageData, tmp_path: Path, settings: dict[str, Any]) -> None:
    network: dict[str, JsonScalar] = {"norm": "none"}
    tolerance = 1e-3 if settings.get("precision") == "fp16" else 1e-5
    _, alone = fit(Ranks.alone("cpu"), tiny_task(tmp_path / "1", network, **SMOOTH, **settings), few_digits)

    first, second = pair.run(fit, tiny_task(tmp_path / "2", network, **SMOOTH, **settings), few_digits)

    assert first[0].outcome == second[0].outcome == "completed"
    assert second[1] == []  # only rank 0 reports
    one, two = last_checkpoint(tmp_path / "1"), last_checkpoint(tmp_path / "2")
    assert_same_tensors(dict(one.network), dict(two.network), tolerance)
    assert_same_course(first[1], alone, tolerance)


def test_batch_norm_statistics_are_equal_on_both_ranks_and_in_the_checkpoint(
    pair: RankPool, few_digits: ImageData, tmp_path: Path
) -> None:
    task = tiny_task(tmp_path, batch_size=16)
    (result, reports), _ = pair.run(fit, task, few_digits)
    alone = evaluate(Ranks.alone("cpu"), evaluation_of(task), few_digits)
    assert result.facts["world_size"] == 2
    for name, value in alone.items():
        assert reports[-1].metrics[name] == pytest.approx(value, abs=1e-6)


def test_two_ranks_resumed_equal_uninterrupted_to_the_last_bit(
    pair: RankPool, few_digits: ImageData, tmp_path: Path
) -> None:
    network: dict[str, JsonScalar] = {"dropout": 0.5}
    pair.run(fit, tiny_task(tmp_path / "whole", network, epochs=3), few_digits)
    pair.run(fit, tiny_task(tmp_path / "parts", network, epochs=3), few_digits, {1: Decision.PAUSE})
    resumed = tiny_task(tmp_path / "parts", network, epochs=3, resume_from="trial-0/epoch-0001.pt")
    (result, _), _ = pair.run(fit, resumed, few_digits)
    assert result.epoch == 3
    whole, parts = last_checkpoint(tmp_path / "whole"), last_checkpoint(tmp_path / "parts")
    assert_same_tensors(dict(whole.network), dict(parts.network))
    assert_same_tensors(dict(whole.optimization), dict(parts.optimization))


def evaluate(ranks: Ranks, task: EvaluateTask, data: ImageData) -> dict[str, float]:
    return dict(trainer.evaluate(task, data, ranks))


@pytest.fixture
def one_right_in_five(tmp_path: Path) -> tuple[TrainTask, ImageData]:
    """A network that answers class 0 always, and is right on the first of five validation items only."""
    data = two_classes(train=[0] * 6, validation=[0, 1, 1, 1, 1])
    return tiny_task(tmp_path, {"kind": "unit_gradient"}, epochs=1), data


def test_every_item_is_counted_once_with_one_rank_and_two(
    pair: RankPool, one_right_in_five: tuple[TrainTask, ImageData]
) -> None:
    for result, reports in (fit(Ranks.alone("cpu"), *one_right_in_five), pair.run(fit, *one_right_in_five)[0]):
        assert reports[0].metrics["accuracy"] == 0.2
        assert result.facts["validation_items"] == 5


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_uneven_batches_give_all_ranks_the_same_steps_as_one(pair: RankPool, tmp_path: Path, parallel: str) -> None:
    # 33 items in batches of 4: of the last but one, with 3 items, the ranks have 1 and 2, each a micro-batch.
    data = two_classes(train=[0, 1, 1] * 11, validation=[0, 1])
    task = tiny_task(tmp_path, {"norm": "none"}, epochs=1, batch_size=4, accumulate=2, parallel=parallel)
    (first, reports), (second, _) = pair.run(fit, task, data)
    alone, (report,) = fit(Ranks.alone("cpu"), task, data)
    assert first.facts["steps"] == second.facts["steps"] == alone.facts["steps"] == 9
    assert reports[0].metrics["train_loss"] == pytest.approx(report.metrics["train_loss"], abs=1e-5)


@pytest.mark.slow
def test_every_item_is_counted_once_with_three_ranks(
    one_right_in_five: tuple[TrainTask, ImageData], tmp_path_factory: pytest.TempPathFactory
) -> None:
    three = RankPool(3, tmp_path_factory.mktemp("three"))
    try:
        replies = three.run(fit, *one_right_in_five)
        measured = three.run(evaluate, evaluation_of(one_right_in_five[0]), one_right_in_five[1])
    finally:
        three.stop()
    assert replies[0][1][0].metrics["accuracy"] == 0.2
    assert [metrics["accuracy"] for metrics in measured] == [0.2] * 3


def test_stop_on_rank_0_ends_all_ranks_at_the_same_epoch_within_seconds(
    pair: RankPool, few_digits: ImageData, tmp_path: Path
) -> None:
    began = time.monotonic()
    replies = pair.run(fit, tiny_task(tmp_path, epochs=50), few_digits, {2: Decision.STOP})
    assert [(result.outcome, result.epoch) for result, _ in replies] == [("stopped", 2)] * 2
    assert time.monotonic() - began < 10.0


def test_ten_trials_follow_each_other_in_one_group(pair: RankPool, few_digits: ImageData, tmp_path: Path) -> None:
    for number in range(10):
        replies = pair.run(fit, tiny_task(tmp_path / str(number), epochs=1, seed=number), few_digits)
        assert [result.outcome for result, _ in replies] == ["completed"] * 2


def test_group_can_be_reopened_after_trials_that_ended_well_and_badly(
    pair: RankPool, few_digits: ImageData, tmp_path: Path
) -> None:
    for number in range(3):
        pair.run(fit, tiny_task(tmp_path / f"good-{number}", epochs=1), few_digits)
        bad = tiny_task(tmp_path / f"bad-{number}", {"kind": "raises_in_training"}, epochs=1)
        errors = pair.run(fit, bad, few_digits)
        assert [str(error) for error in errors] == ["this network cannot be trained"] * 2
        pair.reopen()


def test_weight_without_gradient_does_not_stop_two_ranks(pair: RankPool, few_digits: ImageData, tmp_path: Path) -> None:
    replies = pair.run(fit, tiny_task(tmp_path, {"kind": "unused_weight"}), few_digits)
    assert [result.outcome for result, _ in replies] == ["completed"] * 2


def test_diverging_loss_ends_both_ranks_with_the_same_error(
    pair: RankPool, few_digits: ImageData, tmp_path: Path
) -> None:
    task = tiny_task(tmp_path, optimizer="sgd", learning_rate=1e30, gradient_clip=0.0)
    errors = pair.run(fit, task, few_digits)
    assert [type(error) for error in errors] == [NonFiniteLossError] * 2
    assert str(errors[0]) == str(errors[1])


class _BrokenReporter:
    def __call__(self, report: Report) -> Decision:
        raise ConnectionError("the database is gone")


def fit_with_broken_reporter(ranks: Ranks, task: TrainTask, data: ImageData) -> TrialResult:
    return trainer.fit(task, data, ranks, _BrokenReporter())


def test_reporter_that_fails_on_rank_0_ends_all_ranks(pair: RankPool, few_digits: ImageData, tmp_path: Path) -> None:
    first, second = pair.run(fit_with_broken_reporter, tiny_task(tmp_path), few_digits)
    assert isinstance(first, ConnectionError)
    assert isinstance(second, PeerFailedError)
    assert "rank 0: ConnectionError: the database is gone" in str(second)


def fail_on_rank_1(ranks: Ranks) -> str:
    with ranks.together("reading"):
        if ranks.rank == 1:
            raise OSError("disk full")
    return "unreachable"


def sum_of_ranks(ranks: Ranks) -> float:
    return float(ranks.sum_(torch.tensor([ranks.rank + 1.0])))


def test_together_tells_the_peers_and_leaves_the_group_usable(pair: RankPool) -> None:
    first, second = pair.run(fail_on_rank_1)
    assert isinstance(first, PeerFailedError) and "rank 1: OSError: disk full" in str(first)
    assert isinstance(second, OSError)
    assert pair.run(sum_of_ranks) == [3.0, 3.0]


def check_nudged(ranks: Ranks, name: str, nudge: float) -> None:
    network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    for tensor in network.state_dict().values():
        tensor.fill_(1)
    if ranks.rank == 1:
        network.state_dict()[name].view(-1)[0] += nudge
    ranks.check_equal(network)


@pytest.mark.parametrize("name", ["0.weight", "0.bias", "1.running_var", "1.num_batches_tracked"])
def test_check_equal_names_the_tensor_that_differs(pair: RankPool, name: str) -> None:
    nudge = 1 if name.endswith("tracked") else torch.finfo(torch.float32).eps
    errors = pair.run(check_nudged, name, nudge)
    assert [type(error) for error in errors] == [RanksDivergedError] * 2
    assert f"rank 1 and rank 0 hold different values of '{name}'" in str(errors[0])
    assert pair.run(check_nudged, name, 0) == [None, None]


def decide(ranks: Ranks, decision: Decision) -> Decision:
    return ranks.broadcast_decision(decision if ranks.is_first else None)


@pytest.mark.parametrize("decision", list(Decision))
def test_decision_of_rank_0_reaches_all(pair: RankPool, decision: Decision) -> None:
    assert pair.run(decide, decision) == [decision] * 2


def describe(ranks: Ranks) -> str | None:
    # Only rank 0 reads its context; were that a hidden collective, the barrier below would be out of step.
    text = f"{ranks.rank} of {ranks.world_size} on {ranks.device} {ranks!r:.5}" if ranks.is_first else None
    ranks.sum_(torch.ones(1))
    return text


def test_reading_the_context_on_one_rank_communicates_nothing(pair: RankPool) -> None:
    assert pair.run(describe) == ["0 of 2 on cpu Ranks", None]


def gather(ranks: Ranks) -> list[str]:
    return ranks.gather_objects("x" * (ranks.rank + 1))


def test_gather_objects_keeps_rank_order(pair: RankPool) -> None:
    assert pair.run(gather) == [["x", "xx"]] * 2


def test_checkpoint_of_two_ranks_goes_on_with_one(pair: RankPool, few_digits: ImageData, tmp_path: Path) -> None:
    network: dict[str, JsonScalar] = {"norm": "none"}
    pair.run(fit, tiny_task(tmp_path, network, epochs=2, **SMOOTH), few_digits, {1: Decision.PAUSE})
    resumed = tiny_task(tmp_path, network, epochs=2, resume_from="trial-0/epoch-0001.pt", **SMOOTH)
    fit(Ranks.alone("cpu"), resumed, few_digits)
    fit(Ranks.alone("cpu"), tiny_task(tmp_path / "alone", network, epochs=2, **SMOOTH), few_digits)
    mixed = read_checkpoint(tmp_path / "trial-0" / "epoch-0002.pt")
    alone = last_checkpoint(tmp_path / "alone")
    assert_same_tensors(dict(mixed.network), dict(alone.network), tolerance=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_checkpoint_of_four_ranks_goes_on_with_two(
    pair: RankPool, few_digits: ImageData, tmp_path: Path, parallel: str
) -> None:
    network: dict[str, JsonScalar] = {"norm": "none"}
    task = tiny_task(tmp_path, network, epochs=2, parallel=parallel, **SMOOTH)
    four = RankPool(4, tmp_path)
    try:
        (paused, _), *_ = four.run(fit, task, few_digits, {1: Decision.PAUSE})
    finally:
        four.stop()
    assert (paused.outcome, paused.facts["world_size"]) == ("paused", 4)
    (resumed, _), _ = pair.run(fit, task.model_copy(update={"resume_from": "trial-0/epoch-0001.pt"}), few_digits)
    assert (resumed.outcome, resumed.facts["world_size"]) == ("completed", 2)
    fit(Ranks.alone("cpu"), tiny_task(tmp_path / "alone", network, epochs=2, **SMOOTH), few_digits)
    mixed, alone = last_checkpoint(tmp_path), last_checkpoint(tmp_path / "alone")
    assert_same_tensors(dict(mixed.network), dict(alone.network), tolerance=1e-5)


def check_same(ranks: Ranks, values: list[str | bytes]) -> None:
    ranks.check_same("task", values[ranks.rank])


def test_check_same_names_the_rank_that_differs_on_all_ranks(pair: RankPool) -> None:
    errors = pair.run(check_same, ["a", "b"])
    assert [type(error) for error in errors] == [RanksDivergedError] * 2
    assert str(errors[0]) == str(errors[1])
    assert str(errors[0]).startswith("rank 1 got another task than rank 0; digests: rank 0: ")
    assert pair.run(check_same, ["a", b"a"]) == [None, None]
    Ranks.alone("cpu").check_same("task", "a")


def cpu_seconds_of_check_same(ranks: Ranks, times: int) -> float:
    value = "x" * 1000
    ranks.check_same("task", value)
    began = time.process_time()
    for _ in range(times):
        ranks.check_same("task", value)
    return (time.process_time() - began) / times


def test_check_same_costs_less_than_a_millisecond(pair: RankPool) -> None:
    # The processor's time grows less than the time on the clock with other processes' work; caches are still shared.
    assert min(max(pair.run(cpu_seconds_of_check_same, 100)) for _ in range(3)) < 1e-3


@pytest.mark.parametrize(
    "values, words",
    [
        ("aabb", "ranks 2 and 3 got another task than rank 0;"),
        ("abbb", "rank 0 got another task than rank 1;"),
        ("aabc", "ranks 2 and 3 got another task than rank 0;"),
        ("abcd", "ranks 1, 2 and 3 got another task than rank 0;"),
        ("bab", "rank 1 got another task than rank 0;"),
    ],
)
def test_ranks_are_told_apart_from_most_and_on_a_tie_from_rank_0(values: str, words: str) -> None:
    assert told_apart("task", [value.encode() for value in values]).startswith(words)
