"""Metrics against scikit-learn's, and over ranks against one rank."""

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trainers.rank_pool import RankPool
from trainers.distributed import Ranks
from trainers.errors import BadDataError
from trainers.metrics.classification import ClassificationMeter
from trainers.metrics.defined import check_class_metric, check_number_metric
from trainers.metrics.gathering import gather_rows
from trainers.metrics.names import CLASS_METRICS, NUMBER_METRICS, class_metrics
from trainers.metrics.ranking import rank_items
from trainers.metrics.regression import RegressionMeter

ALONE = Ranks.alone("cpu")
CPU = torch.device("cpu")


def answers(items: int, classes: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits with ties, and labels of which every class has some where there are enough items."""
    generator = torch.Generator().manual_seed(seed)
    logits_NK = torch.randn(items, classes, generator=generator).mul(4.0).round().div(4.0)
    return logits_NK, torch.arange(items) % classes


def measured(logits_NK: torch.Tensor, labels_N: torch.Tensor, ranks: Ranks = ALONE) -> dict[str, float]:
    meter = ClassificationMeter(logits_NK.shape[1], CPU)
    meter.add(logits_NK, labels_N)
    return meter.total(ranks)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40))
def test_counted_metrics_agree_with_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, recall_score

    truth, told = [list(column) for column in zip(*pairs, strict=True)]
    meter = ClassificationMeter(5, CPU)
    meter.add(torch.eye(5)[told], torch.tensor(truth))
    metrics = meter.total(ALONE)
    assert metrics["accuracy"] == pytest.approx(accuracy_score(truth, told))
    recall = recall_score(truth, told, labels=sorted(set(truth)), average="macro", zero_division=0)
    assert metrics["balanced_accuracy"] == pytest.approx(recall)
    assert metrics["f1_macro"] == pytest.approx(f1_score(truth, told, average="macro", zero_division=0))
    assert metrics["f1_micro"] == pytest.approx(f1_score(truth, told, average="micro", zero_division=0))
    details = meter.details()
    assert details["confusion"] == confusion_matrix(truth, told, labels=range(5)).tolist()
    f1_K = f1_score(truth, told, labels=range(5), average=None, zero_division=0)
    assert details["f1_per_class"] == pytest.approx(f1_K.tolist())


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_scored_metrics_agree_with_scikit_learn(classes: int) -> None:
    from sklearn.metrics import average_precision_score, log_loss, roc_auc_score, top_k_accuracy_score

    logits_NK, labels_N = answers(90, classes)
    shares_NK = torch.softmax(logits_NK.double(), dim=1).numpy()
    metrics = measured(logits_NK, labels_N)
    scores = (logits_NK[:, 1] - logits_NK[:, 0]).numpy() if classes == 2 else shares_NK
    auc = roc_auc_score(labels_N, scores, multi_class="ovr")
    precision = average_precision_score(labels_N if classes == 2 else np.eye(classes)[labels_N], scores)
    assert metrics["auc"] == pytest.approx(auc, abs=1e-3)  # softmax in double has fewer ties than our scores
    assert metrics["average_precision"] == pytest.approx(precision, abs=1e-3)
    assert metrics["log_loss"] == metrics["loss"] == pytest.approx(log_loss(labels_N, shares_NK), abs=1e-6)
    if classes > 5:
        untied_NK = logits_NK.double().numpy() - 1e-6 * np.arange(classes)  # of equal ones the first comes first
        assert metrics["top5_accuracy"] == pytest.approx(top_k_accuracy_score(labels_N, untied_NK, k=5))


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=30))
def test_ranking_shares_ties_as_scikit_learn_does(pairs: list[tuple[int, bool]]) -> None:
    from sklearn.metrics import average_precision_score, roc_auc_score

    scores, positive = [list(column) for column in zip(*pairs, strict=True)]
    if len(set(positive)) < 2:
        return
    ranking = rank_items(torch.tensor(scores), torch.tensor(positive))
    assert ranking.auc == pytest.approx(roc_auc_score(positive, scores))
    assert ranking.average_precision == pytest.approx(average_precision_score(positive, scores))


def test_ranking_tells_near_certain_items_apart() -> None:
    logits_NK = torch.tensor([[0.0, 40.0], [0.0, 60.0], [0.0, 50.0], [0.0, 70.0]])
    assert measured(logits_NK, torch.tensor([0, 1, 0, 1]))["auc"] == 1.0


def test_metrics_that_are_measured_are_those_that_are_named() -> None:
    for classes in (2, 5, 6, 51, 100, 101):
        assert set(measured(*answers(3 * classes, classes))) == set(class_metrics(classes))
    assert class_metrics(6) == CLASS_METRICS
    assert set(class_metrics(101)) == {"accuracy", "balanced_accuracy", "f1_macro", "f1_micro"} | {
        "top5_accuracy", "log_loss", "loss"
    }  # fmt: skip


def test_many_classes_are_counted_as_few_are() -> None:
    logits_NK, labels_N = answers(200, 51)
    few = measured(logits_NK[:, :50], labels_N % 50)
    padded_NK = torch.cat([logits_NK[:, :50], torch.full((200, 1), -99.0)], dim=1)
    many = measured(padded_NK, labels_N % 50)
    assert {name: many[name] for name in few} == pytest.approx(few, abs=1e-6)


def test_one_class_alone_has_no_ranked_metrics() -> None:
    metrics = measured(torch.randn(4, 2, generator=torch.Generator().manual_seed(0)), torch.ones(4, dtype=torch.int64))
    assert set(class_metrics(2)) - set(metrics) == {"auc", "average_precision"}


def test_class_that_does_not_occur_leaves_the_mean_of_the_others() -> None:
    logits_NK, labels_N = answers(60, 3)
    part = labels_N < 2
    found = [rank_items(torch.log_softmax(logits_NK[part], 1)[:, k], labels_N[part] == k).auc for k in (0, 1)]
    assert measured(logits_NK[part], labels_N[part])["auc"] == pytest.approx(np.mean(found))


def test_meter_adds_batches_and_counts_empty_ones_as_nothing() -> None:
    logits_NK, labels_N = answers(10, 3)
    parts = ClassificationMeter(3, CPU)
    for part in (slice(0, 4), slice(4, 4), slice(4, 10)):
        parts.add(logits_NK[part], labels_N[part])
    assert parts.total(ALONE) == pytest.approx(measured(logits_NK, labels_N), abs=1e-6)
    json.dumps(dict(parts.details()), allow_nan=False)


def test_metrics_of_no_items_are_refused() -> None:
    for meter in (ClassificationMeter(3, CPU), RegressionMeter(CPU)):
        with pytest.raises(ValueError, match="at least one item"):
            meter.total(ALONE)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.floats(-100, 100), st.floats(-100, 100)), min_size=2, max_size=30))
def test_regression_metrics_agree_with_scikit_learn(pairs: list[tuple[float, float]]) -> None:
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    told, truth = (np.array(column) for column in zip(*pairs, strict=True))
    meter = RegressionMeter(CPU, scale=2.0)
    meter.add(torch.tensor(told)[:, None], torch.tensor(truth))
    metrics = meter.total(ALONE)
    assert metrics["rmse"] == pytest.approx(2.0 * root_mean_squared_error(truth, told), abs=1e-9)
    assert metrics["mae"] == pytest.approx(2.0 * mean_absolute_error(truth, told), abs=1e-9)
    if truth.std() > 1e-3:
        assert metrics["r2"] == pytest.approx(r2_score(truth, told), rel=1e-6, abs=1e-6)
        assert set(metrics) == set(NUMBER_METRICS)


@pytest.mark.parametrize("value", [0.0, 0.3, 1e9])
def test_equal_targets_have_no_r2(value: float) -> None:
    meter = RegressionMeter(CPU)
    meter.add(torch.zeros(7), torch.full((7,), value))
    assert set(meter.total(ALONE)) == {"rmse", "mae", "loss"}


def measure_share(ranks: Ranks, logits_NK: torch.Tensor, labels_N: torch.Tensor) -> tuple[dict[str, float], Any]:
    """Each rank brings every world_size-th block; the last rank brings nothing where there are three."""
    bringing = max(1, ranks.world_size - 1)
    meter = ClassificationMeter(logits_NK.shape[1], CPU)
    if ranks.rank < bringing:
        bounds = [len(labels_N) * part // bringing for part in range(bringing + 1)]
        own = slice(bounds[ranks.rank], bounds[ranks.rank + 1])
        meter.add(logits_NK[own], labels_N[own])
    return meter.total(ranks), meter.details()


def regress_share(ranks: Ranks, told: torch.Tensor, truth: torch.Tensor) -> dict[str, float]:
    meter = RegressionMeter(CPU)
    meter.add(told[ranks.rank :: ranks.world_size], truth[ranks.rank :: ranks.world_size])
    return meter.total(ranks)


def gather_own(ranks: Ranks) -> torch.Tensor:
    return gather_rows(torch.full((2 * ranks.rank, 3), ranks.rank), ranks)


def check_ranks(pool: RankPool, world_size: int) -> None:
    for classes in (2, 7, 51):
        logits_NK, labels_N = answers(5 * classes + 1, classes)
        alone, details = measure_share(ALONE, logits_NK, labels_N)
        for metrics, found in pool.run(measure_share, logits_NK, labels_N):
            assert metrics == pytest.approx(alone, rel=1e-6)
            assert found == details
    told, truth = torch.randn(2, 11, generator=torch.Generator().manual_seed(3))
    for metrics in pool.run(regress_share, told, truth):
        assert metrics == pytest.approx(regress_share(ALONE, told, truth), rel=1e-9)
    for rows in pool.run(gather_own):
        assert rows[:, 0].tolist() == [rank for rank in range(world_size) for _ in range(2 * rank)]


def test_two_ranks_measure_what_one_does(pair: RankPool) -> None:
    check_ranks(pair, 2)


@pytest.mark.slow
def test_three_ranks_of_which_one_has_nothing_measure_what_one_does(tmp_path_factory: pytest.TempPathFactory) -> None:
    three = RankPool(3, tmp_path_factory.mktemp("three"))
    try:
        check_ranks(three, 3)
    finally:
        three.stop()


def labels(*values: int) -> npt.NDArray[np.int64]:
    return np.array(values)


def test_ranked_objective_on_one_class_is_refused_with_the_counts_of_the_split() -> None:
    splits = {"validation": labels(1, 1, 1), "test": labels(0, 1)}
    with pytest.raises(BadDataError) as caught:
        check_class_metric("auc", splits, ["no", "yes"], "some.csv")
    assert str(caught.value) == (
        "auc of 'some.csv' is not defined: the validation split has 0 of 'no', 3 of 'yes'; it needs at least two "
        "classes in each split: add items, or choose another metric, such as accuracy"
    )
    check_class_metric("accuracy", splits, ["no", "yes"], "some.csv")
    check_class_metric("auc", {"test": labels(0, 1)}, ["no", "yes"], "some.csv")


def test_r2_on_equal_targets_is_refused() -> None:
    with pytest.raises(BadDataError, match=r"all 3 targets of the test split are 2.5;.*such as rmse"):
        check_number_metric("r2", {"validation": np.arange(3.0), "test": np.full(3, 2.5)}, "some.csv")
    check_number_metric("rmse", {"test": np.full(3, 2.5)}, "some.csv")
