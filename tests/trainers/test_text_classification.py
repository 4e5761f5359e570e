import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from search_spaces import catalog
from search_spaces.configuration import JsonScalar
from tests.contracts.trainer_contract import TrainerContract
from tests.trainers.rank_pool import RankPool
from tests.trainers.training import Script, assert_same_tensors, evaluation_of, last_checkpoint, timeless
from trainers.checkpoint import read_checkpoint
from trainers.config import TrainConfig, TrainTask
from trainers.data.batches import epoch_batches, epoch_order, micro_batches
from trainers.data.spec import DataSpec
from trainers.data.texts import TextData, cut_texts
from trainers.data.texts_sources import LabelledTexts
from trainers.data.tokenizer import UNKNOWN
from trainers.distributed import Ranks
from trainers.errors import UserCodeError
from trainers.reporting import Decision
from trainers.tasks.text_classification import TextClassification
from trainers.text_problem import TextProblem
from trainers.trainer import Trainer

trainer = TextClassification()
ALONE = Ranks.alone("cpu")
CPU = torch.device("cpu")

SMALL: Mapping[str, Mapping[str, JsonScalar]] = {
    "cnn_text": {"width": 32, "filters": 32, "windows": 2, "input_dropout": 0.0, "dropout": 0.0},
    "transformer_text": {"depth": 1, "width": 32, "heads": 2, "expansion": 1, "dropout": 0.0},
}


def text_task(root: Path, space: str, change: Mapping[str, JsonScalar] | None = None, **training: Any) -> TrainTask:
    resume_from = training.pop("resume_from", None)
    settings = {"epochs": 2, "batch_size": 16, "learning_rate": 0.01, "seed": 7, **training}
    return TrainTask(
        space=space,
        configuration={**(catalog.load(space).SPACE.defaults or {}), **SMALL[space], **(change or {})},
        training=TrainConfig(**settings),
        artifacts_root=str(root),
        checkpoint_dir="trial-0",
        resume_from=resume_from,
    )


def labelled(texts: list[str], labels: list[int], *names: str) -> LabelledTexts:
    return LabelledTexts(texts=tuple(texts), labels_N=np.array(labels, dtype=np.int64), class_names=names)


@pytest.fixture(scope="module")
def orders_file(tmp_path_factory: pytest.TempPathFactory) -> DataSpec:
    """100 texts of 2 to 21 words; their class is which of two words comes first."""
    rng = np.random.default_rng(0)
    lines = ["text,direction"]
    for item in range(100):
        first, second = ("up", "down") if item % 2 else ("down", "up")
        others = [f"word{number}" for number in rng.integers(6, size=min(19, int(rng.exponential(6.0))))]
        one, two = sorted(rng.integers(len(others) + 1, size=2).tolist())
        lines.append(" ".join([*others[:one], first, *others[one:two], second, *others[two:]]) + f",{first}")
    path = tmp_path_factory.mktemp("texts") / "orders.csv"
    path.write_text("\n".join(lines))
    return DataSpec(source=str(path))


@pytest.fixture(scope="module")
def orders(orders_file: DataSpec) -> TextData:
    return trainer.load(orders_file)


class TestTextClassification(TrainerContract):
    @pytest.fixture
    def trainer(self) -> Trainer:
        return TextClassification()

    @pytest.fixture
    def data(self, orders: TextData) -> TextData:
        return orders

    @pytest.fixture
    def task(self, tmp_path: Path, orders_file: DataSpec) -> TrainTask:
        task = text_task(tmp_path, "cnn_text", {"dropout": 0.3}, epochs=3, augmentation=0.2)
        return task.model_copy(update={"data": orders_file})

    @pytest.fixture
    def missing_data(self) -> DataSpec:
        return DataSpec(source="no_such_texts.csv")


def test_planning_with_the_trainer_loads_no_torch(tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text("text,y\nthe one,a\nthe other,b\n")
    code = (
        "import sys; from trainers.tasks import load_trainer; from trainers.data.spec import DataSpec;"
        f"t = load_trainer('text_classification'); d = DataSpec(source={str(tmp_path / 'texts.csv')!r}); t.check(d);"
        "assert 'accuracy' in t.measured(d) and 'augmentation' in t.hyperparameters;"
        "loaded = {'torch', 'ray', 'optuna', 'sklearn'} & set(sys.modules); sys.exit(str(loaded) if loaded else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("parallel", ["ddp", "fsdp", "pipeline"])
@pytest.mark.parametrize("space", SMALL)
def test_two_ranks_equal_one_although_they_fill_up_differently(
    pair: RankPool, orders: TextData, tmp_path: Path, space: str, parallel: str
) -> None:
    settings: dict[str, Any] = {"optimizer": "sgd", "learning_rate": 0.1, "augmentation": 0.3}
    assert _lengths_of_first_batches(orders, rank=0) != _lengths_of_first_batches(orders, rank=1)
    script = Script()
    trainer.fit(text_task(tmp_path / "1", space, **settings), orders, ALONE, script)
    task = text_task(tmp_path / "2", space, accumulate=2, parallel=parallel, **settings)
    (_, reports), _ = pair.run(fit, task, orders)
    measured = trainer.evaluate(evaluation_of(task), orders, ALONE)
    assert measured["loss"] == pytest.approx(script.reports[-1].metrics["loss"], abs=1e-5)
    if parallel == "ddp":  # the others may keep their weights in other forms
        one, two = last_checkpoint(tmp_path / "1"), last_checkpoint(tmp_path / "2")
        assert_same_tensors(dict(one.network), dict(two.network), tolerance=1e-5)
    for theirs, ours in zip(reports, script.reports, strict=True):
        assert theirs == pytest.approx({name: ours.metrics[name] for name in theirs}, abs=1e-5)


def fit(ranks: Ranks, task: TrainTask, data: TextData) -> tuple[str, list[dict[str, float]]]:
    script = Script()
    outcome = trainer.fit(task, data, ranks, script).outcome
    return outcome, [{name: report.metrics[name] for name in ("train_loss", "loss")} for report in script.reports]


def _lengths_of_first_batches(data: TextData, rank: int) -> list[int]:
    """Return how long the texts of a rank's micro-batches are in the first epoch."""
    problem = TextProblem(data, TrainConfig(), CPU)
    order = torch.from_numpy(epoch_order(len(data.train), 7, 1))
    positions = [part for batch in epoch_batches(len(data.train), 16) for part in micro_batches(batch, 4, rank, 2)]
    return [batch.inputs[0].shape[1] for batch in problem.training_batches(1, order, positions)]


@pytest.mark.parametrize("space", SMALL)
def test_accumulation_equals_big_batch(orders: TextData, tmp_path: Path, space: str) -> None:
    settings: dict[str, Any] = {"optimizer": "sgd", "learning_rate": 0.1, "augmentation": 0.3}
    for parts in (1, 5):
        task = text_task(tmp_path / str(parts), space, accumulate=parts, **settings)
        trainer.fit(task, orders, ALONE, Script())
    whole, cut = (last_checkpoint(tmp_path / str(parts)) for parts in (1, 5))
    assert_same_tensors(dict(whole.network), dict(cut.network), tolerance=1e-5)


def test_resumed_training_equals_uninterrupted_one_to_the_last_bit(orders: TextData, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"augmentation": 0.3, "epochs": 3}
    network: Mapping[str, JsonScalar] = {"dropout": 0.3, "stochastic_depth": 0.3}
    whole, first, second = Script(), Script({1: Decision.PAUSE}), Script()
    trainer.fit(text_task(tmp_path / "whole", "transformer_text", network, **settings), orders, ALONE, whole)
    trainer.fit(text_task(tmp_path / "parts", "transformer_text", network, **settings), orders, ALONE, first)
    resumed = text_task(
        tmp_path / "parts", "transformer_text", network, resume_from="trial-0/epoch-0001.pt", **settings
    )
    trainer.fit(resumed, orders, ALONE, second)
    parts = first.reports + second.reports
    assert [timeless(report) for report in parts] == [timeless(report) for report in whole.reports]
    left, right = last_checkpoint(tmp_path / "whole"), last_checkpoint(tmp_path / "parts")
    assert_same_tensors(dict(left.network), dict(right.network))
    assert_same_tensors(dict(left.optimization), dict(right.optimization))


def test_batches_are_filled_up_to_their_own_longest_text(orders: TextData) -> None:
    problem = TextProblem(orders, TrainConfig(), CPU)
    order = torch.from_numpy(np.argsort(orders.train.lengths_N, kind="stable"))
    positions: list[torch.Tensor | slice] = [slice(0, 5), torch.arange(55, 60), slice(3, 4)]
    for places, batch in zip(positions, problem.training_batches(1, order, positions), strict=True):
        (tokens_nL,) = batch.inputs
        items = order[places].numpy()
        lengths = orders.train.lengths_N[items]
        assert tokens_nL.shape[1] == min(orders.input_shape.length, 8 * -(-int(lengths.max()) // 8))
        assert ((tokens_nL > 0).sum(dim=1).numpy() == lengths).all()
        assert batch.targets.tolist() == orders.train.labels_N[items].tolist()
        last = items[-1]
        own = orders.train.tokens_T[orders.train.ends_N[last] - lengths[-1] : orders.train.ends_N[last]]
        assert tokens_nL[-1, : lengths[-1]].tolist() == own.tolist()


def test_hidden_words_are_about_as_many_as_asked_for_and_follow_epoch_and_place(orders: TextData) -> None:
    problem = TextProblem(orders, TrainConfig(augmentation=0.3), CPU)
    order, whole = torch.arange(len(orders.train)), [slice(0, len(orders.train))]
    plain, first, again, second = (
        next(TextProblem(orders, TrainConfig(augmentation=share), CPU).training_batches(epoch, order, whole)).inputs[0]
        for share, epoch in ((0.0, 1), (0.3, 1), (0.3, 1), (0.3, 2))
    )
    changed = first != plain
    assert (first[changed] == UNKNOWN).all() and not (plain[changed] == 0).any()
    assert 0.2 < changed.sum() / (plain > 1).sum() < 0.4
    assert torch.equal(first, again) and not torch.equal(first, second)
    (part,) = problem.training_batches(1, order, [slice(20, 30)])
    assert torch.equal(part.inputs[0], first[20:30, : part.inputs[0].shape[1]])


def test_only_words_are_changed_and_nothing_is_mixed(orders: TextData, tmp_path: Path) -> None:
    with pytest.raises(UserCodeError, match=r"mixup=0\.2"):
        trainer.fit(text_task(tmp_path, "cnn_text", mixup=0.2), orders, ALONE, Script())


def test_checkpoint_reads_texts_as_the_training_did(orders: TextData, tmp_path: Path) -> None:
    trainer.fit(text_task(tmp_path, "cnn_text", epochs=1), orders, ALONE, Script())
    blueprint = read_checkpoint(tmp_path / "trial-0" / "epoch-0001.pt").blueprint
    assert blueprint["tokenizer"] == orders.tokenizer.to_json()
    assert blueprint["class_names"] == ["down", "up"]


@pytest.mark.parametrize("space", SMALL)
def test_order_of_words_is_learned(tmp_path: Path, space: str) -> None:
    """Words alone do not tell these classes apart."""
    texts = ["up then down", "down then up", "up and then down", "down and then up"] * 10
    data = cut_texts(labelled(texts, [0, 1] * 20, "falls", "rises"), None, DataSpec())
    script = Script()
    network = {"smallest_window": 2} if space == "cnn_text" else {}
    trainer.fit(text_task(tmp_path, space, network, epochs=12), data, ALONE, script)
    assert script.reports[-1].metrics["accuracy"] == 1.0


CHINESE = (
    [
        "余额是多少",
        "我想查询余额",
        "请查询我的余额",
        "帮我看看余额",
        "我的账户余额",
        "余额查询",
        "现在余额有多少",
        "查一下余额",
    ],
    [
        "我的卡丢了",
        "银行卡丢失",
        "卡被偷了怎么办",
        "我丢了银行卡",
        "请挂失我的卡",
        "卡不见了",
        "我找不到卡",
        "丢卡挂失",
    ],
)


def test_chinese_texts_without_spaces_are_learned(tmp_path: Path) -> None:
    texts = [text for pair_of_texts in zip(*CHINESE, strict=True) for text in pair_of_texts]
    data = cut_texts(labelled(texts, [0, 1] * 8, "余额", "挂失"), None, DataSpec(test_fraction=0.25))
    assert {"余", "额", "卡"} <= set(data.tokenizer.tokens)
    task = text_task(tmp_path, "cnn_text", epochs=15, batch_size=4)
    trainer.fit(task, data, ALONE, Script())
    test = evaluation_of(task).model_copy(update={"split": "test"})
    assert trainer.evaluate(test, data, ALONE)["accuracy"] == 1.0


@pytest.mark.slow
@pytest.mark.skipif("AUTOML_BENCH_DATA" not in os.environ, reason="needs the folder of the real data")
def test_defaults_tell_77_intents_apart(tmp_path: Path) -> None:
    folder = Path(os.environ["AUTOML_BENCH_DATA"])
    spec = DataSpec(
        source=str(folder / "banking77_train.csv.gz"),
        test_source=str(folder / "banking77_test.csv.gz"),
        validation_fraction=0.1,
    )
    space = catalog.load("cnn_text").SPACE
    assert space.defaults is not None
    defaults = space.defaults
    training = {name: defaults[name] for name in space.names("training")}
    task = TrainTask(
        space="cnn_text",
        configuration=defaults,
        training=TrainConfig.model_validate({**training, "epochs": 5}),
        artifacts_root=str(tmp_path),
        checkpoint_dir="trial-0",
    )
    data = trainer.load(spec)
    assert (len(data.class_names), data.tokenizer.kind) == (77, "word")
    trainer.fit(task, data, ALONE, Script())
    test = evaluation_of(task).model_copy(update={"split": "test"})
    assert trainer.evaluate(test, data, ALONE)["accuracy"] > 0.85
