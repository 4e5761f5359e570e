"""Training on tables: what every trainer must do, on classes and on numbers, on one rank and on two."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from search_spaces import catalog
from search_spaces.configuration import JsonScalar
from tests.contracts.trainer_contract import TrainerContract
from tests.trainers.rank_pool import RankPool
from tests.trainers.training import Script, assert_same_tensors, last_checkpoint
from trainers.config import EvaluateTask, LossName, TrainConfig, TrainTask
from trainers.data.spec import DataSpec
from trainers.data.table_loading import load_table
from trainers.data.tables import TableData
from trainers.distributed import Ranks
from trainers.errors import BadDataError, UserCodeError
from trainers.reporting import Report, TrialResult
from trainers.table_problem import TableProblem
from trainers.tasks import load_trainer
from trainers.trainer import Trainer

ALONE = Ranks.alone("cpu")
SMALL: dict[str, JsonScalar] = {"depth": 1, "width": 32, "embedding": 2, "dropout": 0.0, "norm": "none"}


def table(folder: Path, target: str) -> DataSpec:
    """Write 120 rows of two numbers (one with gaps) and a category, from which either target follows."""
    rng = np.random.default_rng(0)
    lines = []
    for i in range(120):
        a, b, colour = rng.normal(50.0, 10.0), rng.normal(), ("red", "blue", "")[i % 3]
        price = 1000.0 + 20.0 * a + 300.0 * (colour == "red")
        lines.append(f"{a:.3f},{'' if i % 10 == 0 else f'{b:.3f}'},{colour},{'high' if b > 0 else 'low'},{price:.2f}")
    path = folder / f"{target}.csv"
    path.write_text("\n".join(["a,b,colour,grade,price", *lines]))
    return DataSpec(source=str(path), target=target, ignore=tuple({"grade", "price"} - {target}))


def task_on(spec: DataSpec, root: Path, network: dict[str, JsonScalar] | None = None, **training: Any) -> TrainTask:
    defaults = catalog.load("tabular_mlp").SPACE.defaults
    assert defaults is not None
    return TrainTask(
        space="tabular_mlp",
        configuration={**defaults, **SMALL, **(network or {})},
        data=spec,
        training=TrainConfig(**{"epochs": 3, "batch_size": 16, "learning_rate": 0.01, "seed": 7, **training}),
        artifacts_root=str(root),
        checkpoint_dir="trial-0",
    )


def fit(ranks: Ranks, task: TrainTask, data: TableData) -> tuple[TrialResult, list[Report]]:
    script = Script()
    return load_trainer("tabular").fit(task, data, ranks, script), script.reports


@pytest.fixture(params=["grade", "price"], ids=["classes", "numbers"])
def spec(request: pytest.FixtureRequest, tmp_path: Path) -> DataSpec:
    return table(tmp_path, request.param)


@pytest.fixture
def data(spec: DataSpec) -> TableData:
    return load_table(spec)


@pytest.fixture
def objective(data: TableData) -> dict[str, Any]:
    return {"metric": "accuracy"} if data.kind == "classes" else {"metric": "rmse", "direction": "minimize"}


class TestTabular(TrainerContract):
    @pytest.fixture
    def trainer(self) -> Trainer:
        return load_trainer("tabular")

    @pytest.fixture
    def data(self, spec: DataSpec) -> TableData:
        return load_table(spec)

    @pytest.fixture
    def task(self, spec: DataSpec, tmp_path: Path, objective: dict[str, Any]) -> TrainTask:
        return task_on(spec, tmp_path, **objective)

    @pytest.fixture
    def missing_data(self) -> DataSpec:
        return DataSpec(source="nowhere.csv")


def test_rows_are_learned_and_errors_of_numbers_are_in_their_own_units(
    spec: DataSpec, data: TableData, objective: dict[str, Any], tmp_path: Path
) -> None:
    task = task_on(spec, tmp_path, epochs=20, learning_rate=0.03, weight_decay=0.0, **objective)
    result, reports = fit(ALONE, task, data)
    last = reports[-1].metrics
    if data.kind == "classes":
        assert last["accuracy"] > 0.85
        assert 0.5 <= float(str(result.facts["majority_share"])) < 0.7
        assert result.facts["class_names"] == ["high", "low"]
        confusion: Any = result.facts["confusion"]
        assert np.sum(confusion) == result.facts["validation_items"] == 24
    else:
        assert 0.0 < last["mae"] <= last["rmse"] < 100.0  # the numbers spread over 230
        assert last["r2"] > 0.9
        assert last["rmse"] == pytest.approx(np.sqrt(last["loss"]) * data.target_scale)


def test_two_ranks_train_and_measure_what_one_does(
    pair: RankPool, spec: DataSpec, data: TableData, objective: dict[str, Any], tmp_path: Path
) -> None:
    smooth: dict[str, Any] = {"optimizer": "sgd", "learning_rate": 0.05, "batch_size": 17, **objective}
    _, alone = fit(ALONE, task_on(spec, tmp_path / "1", **smooth), data)
    (_, reports), (_, nothing) = pair.run(fit, task_on(spec, tmp_path / "2", **smooth), data)
    assert nothing == []
    assert_same_tensors(
        dict(last_checkpoint(tmp_path / "1").network), dict(last_checkpoint(tmp_path / "2").network), 1e-5
    )
    for ours, theirs in zip(reports, alone, strict=True):
        for name in load_trainer("tabular").measured(spec):
            assert ours.metrics[name] == pytest.approx(theirs.metrics[name], rel=1e-4, abs=1e-5)


def test_confusion_is_that_of_the_best_epoch_also_when_resumed(tmp_path: Path) -> None:
    spec = table(tmp_path, "grade")
    data = load_table(spec)
    whole, reports = fit(ALONE, task_on(spec, tmp_path / "whole", epochs=4, learning_rate=0.3), data)
    best = max(reports, key=lambda report: (report.metrics["accuracy"], -report.epoch))
    confusion = np.array(whole.facts["confusion"])
    assert whole.facts["best_epoch"] == best.epoch
    assert np.trace(confusion) / confusion.sum() == pytest.approx(best.metrics["accuracy"])
    task = task_on(spec, tmp_path / "whole", epochs=4, learning_rate=0.3)
    resumed, _ = fit(ALONE, task.model_copy(update={"resume_from": "trial-0/epoch-0003.pt"}), data)
    assert resumed.facts["confusion"] == whole.facts["confusion"]


def test_share_of_the_largest_class_is_told_beside_the_accuracy(tmp_path: Path) -> None:
    path = tmp_path / "imbalanced.csv"
    path.write_text("x,y\n" + "".join(f"{i % 7},{'rare' if i % 100 == 0 else 'usual'}\n" for i in range(1000)))
    spec = DataSpec(source=str(path))
    result, reports = fit(ALONE, task_on(spec, tmp_path, batch_size=100), load_table(spec))
    assert reports[-1].metrics["accuracy"] == result.facts["majority_share"] == 0.99
    assert result.facts["balanced_accuracy"] == 0.5


def test_name_of_the_trainer_forces_the_kind_of_target(tmp_path: Path) -> None:
    path = tmp_path / "whole.csv"
    path.write_text("x,y\n" + "".join(f"{i},{i % 7}\n" for i in range(70)))
    spec = DataSpec(source=str(path))
    measured = {
        name: list(load_trainer(name).measured(spec))
        for name in ("tabular", "tabular_classification", "tabular_regression")
    }
    assert measured["tabular"][0] == measured["tabular_classification"][0] == "accuracy"
    assert measured["tabular_regression"] == ["r2", "rmse", "mae", "loss"]
    for name in measured:
        trainer = load_trainer(name)
        assert list(trainer.measured_on(trainer.load(spec))) == measured[name]  # type: ignore[attr-defined]  # Tabular


def test_objective_without_a_value_on_a_split_is_refused_with_its_counts(tmp_path: Path) -> None:
    test = tmp_path / "test.csv"
    test.write_text("x,y\n1,b\n2,b\n")
    path = tmp_path / "train.csv"
    path.write_text("x,y\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(40)))
    trainer = load_trainer("tabular")
    data = trainer.load(DataSpec(source=str(path), test_source=str(test)))
    trainer.check_objective("accuracy", data)
    with pytest.raises(BadDataError, match=r"auc of .* the test split has 0 of 'a', 2 of 'b'; it needs at least two"):
        trainer.check_objective("auc", data)
    evaluation = _evaluation(task_on(DataSpec(source=str(path)), tmp_path, epochs=1))
    trainer.fit(task_on(DataSpec(source=str(path)), tmp_path, epochs=1), data, ALONE, Script())
    assert {"auc", "average_precision"} & set(trainer.evaluate(evaluation, data, ALONE)) == set()


def test_metric_of_the_other_kind_is_refused_with_those_that_are_measured(spec: DataSpec, tmp_path: Path) -> None:
    data = load_table(spec)
    other = "r2" if data.kind == "classes" else "accuracy"
    with pytest.raises(UserCodeError, match=f"no metric '{other}'"):
        fit(ALONE, task_on(spec, tmp_path, metric=other), data)


def test_loss_of_the_other_kind_is_refused_with_those_that_fit(spec: DataSpec, data: TableData) -> None:
    wrong: LossName = "mse" if data.kind == "classes" else "focal"
    with pytest.raises(UserCodeError, match=f"loss '{wrong}' is not for {data.kind}"):
        TableProblem(data, TrainConfig(loss=wrong), torch.device("cpu"))


def test_read_only_arrays_train_without_a_change(spec: DataSpec, data: TableData, tmp_path: Path) -> None:
    before = load_table(spec)
    for split in (data.train, data.validation):
        for array in (split.numbers_ND, split.categories_NC, split.targets_N):
            array.setflags(write=False)
    metric = "accuracy" if data.kind == "classes" else "r2"
    fit(ALONE, task_on(spec, tmp_path, epochs=1, metric=metric), data)
    np.testing.assert_array_equal(data.train.numbers_ND, before.train.numbers_ND)


def test_blueprint_tells_what_becomes_of_each_column(spec: DataSpec, data: TableData, tmp_path: Path) -> None:
    metric = "accuracy" if data.kind == "classes" else "r2"
    fit(ALONE, task_on(spec, tmp_path, epochs=1, metric=metric), data)
    blueprint = last_checkpoint(tmp_path).blueprint
    columns = blueprint["columns"]
    assert isinstance(columns, list)
    assert columns == [column.to_json() for column in data.columns]
    assert (blueprint["target"], blueprint["target_kind"]) == (spec.target, data.kind)
    assert blueprint["class_names"] == list(data.class_names)


def test_planning_with_the_trainer_loads_no_torch(spec: DataSpec) -> None:
    code = (
        "import sys; from trainers.tasks import load_trainer; from trainers.data.spec import DataSpec;"
        f"d = DataSpec.model_validate({spec.model_dump()!r});"
        "t = load_trainer('tabular'); t.check(d); t.measured(d); t.hyperparameters;"
        "loaded = {'torch', 'ray', 'optuna', 'sklearn'} & set(sys.modules); sys.exit(str(loaded) if loaded else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.slow
@pytest.mark.skipif("AUTOML_BENCH_DATA" not in os.environ, reason="AUTOML_BENCH_DATA names no folder of data sets")
@pytest.mark.parametrize(
    ("name", "target", "metric", "least"),
    [("magic", "y", "accuracy", 0.86), ("california_housing", "median_house_value", "r2", 0.74)],
)
def test_defaults_of_the_space_learn_real_tables(
    name: str, target: str, metric: str, least: float, tmp_path: Path
) -> None:
    spec = DataSpec(source=str(Path(os.environ["AUTOML_BENCH_DATA"]) / f"{name}.csv.gz"), target=target)
    data = load_table(spec)
    defaults = catalog.load("tabular_mlp").SPACE.defaults
    assert defaults is not None
    training = {name: defaults[name] for name in catalog.load("tabular_mlp").SPACE.names("training")}
    task = task_on(spec, tmp_path, dict(defaults), **{**training, "epochs": 8, "metric": metric})
    fit(ALONE, task, data)
    assert load_trainer("tabular").evaluate(_evaluation(task), data, ALONE)[metric] > least


def _evaluation(task: TrainTask) -> EvaluateTask:
    return EvaluateTask(
        space=task.space,
        configuration=task.configuration,
        artifacts_root=task.artifacts_root,
        checkpoint=f"{task.checkpoint_dir}/epoch-{task.training.epochs:04d}.pt",
        split="test",
    )
