import pickle
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from search_spaces.configuration import JsonScalar
from tests.trainers.custom.own import Reports, own_task, train, write
from tests.trainers.rank_pool import RankPool
from tests.trainers.training import assert_same_tensors, timeless
from trainers.checkpoint import read_checkpoint
from trainers.config import EvaluateTask, TrainConfig
from trainers.custom.own_meter import LossMeter, OwnMeter
from trainers.data.spec import DataSpec
from trainers.distributed import Ranks
from trainers.errors import BadDataError, PeerFailedError, UserCodeError
from trainers.parallel.replicas import Replicas
from trainers.precision import MixedPrecision
from trainers.problem import Batch
from trainers.reporting import Decision
from trainers.tasks import load_trainer

HEAD = """
    import torch
    from torch import nn
    from torch.utils.data import TensorDataset
    from search_spaces import Float, Integer, SearchSpace

    WIDTH = Integer(low=2, high=8, role="architecture")
    SPACE = SearchSpace("own", {"learning_rate": Float(low=1e-3, high=1.0), "width": WIDTH})

    class Noisy:
        def __init__(self, first, items):
            generator = torch.Generator().manual_seed(first)
            self.inputs = torch.randn(items, 3, generator=generator)
        def __len__(self):
            return len(self.inputs)
        def __getitem__(self, item):
            return self.inputs[item] + 0.1 * torch.randn(3), TARGET(self.inputs[item])

    def build_model(configuration):
        width = configuration["width"]
        return nn.Sequential(nn.Linear(3, width), nn.Dropout(0.1), nn.Linear(width, OUT))
    """
CLASSES = "TARGET, OUT = lambda x: int(x.sum() > 0), 2\n"
NUMBERS = "TARGET, OUT = lambda x: x.sum(dim=0, keepdim=True), 1\n"
VECTORS = "TARGET, OUT = lambda x: 2 * x, 3\n"
DATASETS = "def datasets(source):\n    return Noisy(0, 37), Noisy(1, 9), Noisy(2, 5)\n"
LOSS = "def loss(answers, targets):\n    return (answers - targets).square()\n"
MEAN_LOSS = "def loss(answers, targets):\n    return (answers - targets).square().mean()\n"
LOSS_OF = "def loss(answers, targets):\n    return {}\n"
METRICS_OF = "def metrics(answers, targets):\n    return {}\n"
METRICS = (
    "def metrics(answers, targets):\n    return {'largest': (answers - targets).abs().max(), 'items': len(targets)}\n"
)
CONFIGURATION: dict[str, JsonScalar] = {"learning_rate": 0.05, "width": 4}
CPU = torch.device("cpu")
ONE = Batch((torch.zeros(1, 1),), torch.zeros(1))


def own_file(tmp_path: Path, *parts: str) -> Path:
    return write(tmp_path, "own.py", "\n".join(["", textwrap.dedent(HEAD), *parts]).lstrip())


def last_network(root: Path) -> Any:
    return read_checkpoint(sorted((root / "artifacts").rglob("epoch-*.pt"))[-1]).network


def task_of(tmp_path: Path, file: Path, **training: Any) -> Any:
    settings = {"epochs": 2, "batch_size": 8, "metric": "loss", "direction": "minimize", **training}
    return own_task(tmp_path, str(file), dict(CONFIGURATION), **settings)


@pytest.mark.parametrize(
    "parts, metrics",
    [
        ((CLASSES, DATASETS), {"accuracy", "auc", "loss"}),
        ((NUMBERS, DATASETS), {"r2", "rmse", "loss"}),
        ((VECTORS, DATASETS, LOSS), {"loss"}),
        ((VECTORS, DATASETS, MEAN_LOSS, METRICS), {"loss", "largest", "items"}),
        ((CLASSES, DATASETS, "def metrics(answers, targets):\n    return {'own': 1}\n"), {"accuracy", "own"}),
    ],
    ids=["classes", "numbers", "vectors", "own metrics", "classes with own metrics"],
)
def test_network_with_own_data_trains_and_measures(tmp_path: Path, parts: tuple[str, ...], metrics: set[str]) -> None:
    file = own_file(tmp_path, *parts)
    result, reports = train(file, task_of(tmp_path, file))
    assert (result.outcome, len(reports)) == ("completed", 2)
    assert metrics <= set(reports[0].metrics)
    if "items" in metrics:
        assert reports[0].metrics["items"] == 9
    trainer = load_trainer(str(file))
    assert reports[-1].checkpoint is not None
    evaluation = EvaluateTask(
        space=str(file), configuration=CONFIGURATION, artifacts_root=str(tmp_path / "artifacts"),
        checkpoint=reports[-1].checkpoint.path, split="test",
    )  # fmt: skip
    assert "loss" in trainer.evaluate(evaluation, trainer.load(DataSpec()), Ranks.alone("cpu"))


BATCH_STATISTICS = """
def build_model(configuration):
    norm = nn.BatchNorm1d(4, affine=False, track_running_stats=False)
    return nn.Sequential(nn.Linear(3, 4), norm, nn.Linear(4, OUT))
"""


@pytest.mark.parametrize("parts", [(CLASSES,), (VECTORS, LOSS)], ids=["classes", "own loss"])
def test_network_that_cannot_answer_one_item_is_trained_and_measured(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, parts: tuple[str, ...]
) -> None:
    file = own_file(tmp_path, *parts, DATASETS, BATCH_STATISTICS)
    result, reports = train(file, task_of(tmp_path, file).model_copy(update={"tensorboard": "board"}))
    assert (result.outcome, len(reports)) == ("completed", 2)
    assert result.facts["multiply_adds"] == 4 * 3 + 4 * (2 if parts == (CLASSES,) else 3), "those of one item"
    assert "not drawn" not in caplog.text
    drafts = load_trainer(str(file)).drafts(str(file), load_trainer(str(file)).load(DataSpec()))
    assert drafts.count_multiply_adds(CONFIGURATION) == result.facts["multiply_adds"]
    assert drafts.measure_latency_ms(CONFIGURATION, "cpu") > 0.0


@pytest.mark.parametrize("parallel", ["ddp", "fsdp", "pipeline"])
def test_ranks_train_a_network_that_cannot_answer_one_item(pair: RankPool, tmp_path: Path, parallel: str) -> None:
    file = own_file(tmp_path, CLASSES, DATASETS, BATCH_STATISTICS)
    trainer = load_trainer(str(file))
    training = TrainConfig(parallel=parallel)  # type: ignore[arg-type]  # one of its words
    data = trainer.load(DataSpec())
    assert trainer.mistakes_once_loaded(training, str(file), [CONFIGURATION], data, 2) == []
    task = task_of(tmp_path, file, parallel=parallel)
    first, second = pair.run(_train_on_ranks, str(file), str(tmp_path), task)
    assert len(first) == 2 and second == []


def test_no_pass_has_a_single_item_beside_larger_ones() -> None:
    replicas = Replicas(nn.Linear(1, 1), Ranks.alone("cpu"), MixedPrecision("fp32", CPU), ONE, 1)
    for items in range(40):
        for most in (1, 3, 4, 8):
            passes = replicas._own_share(items, most)
            sizes = [part.stop - part.start for part in passes]
            assert sum(sizes) == items and max(sizes, default=0) <= most and len(passes) == -(-items // most)
            assert [part.start for part in passes[1:]] == [part.stop for part in passes[:-1]]
            assert 1 not in sizes or most == 1 or items == 1


def test_mean_and_single_losses_train_alike(tmp_path: Path) -> None:
    for name, loss in (("single", LOSS), ("mean", MEAN_LOSS)):
        file = own_file(tmp_path / name, VECTORS, DATASETS, loss)
        train(file, task_of(tmp_path / name, file))
    assert_same_tensors(last_network(tmp_path / "single"), last_network(tmp_path / "mean"), tolerance=1e-6)


@pytest.mark.parametrize("workers", [0, 2])
def test_resumed_training_repeats_the_uninterrupted_one_to_the_last_bit(tmp_path: Path, workers: int) -> None:
    file = own_file(tmp_path, CLASSES, DATASETS)
    whole_task = task_of(tmp_path / "whole", file, epochs=3)
    _, whole = train(file, whole_task)
    task = task_of(tmp_path, file, epochs=3, loader_workers=workers)
    _, first = train(file, task, Reports({1: Decision.PAUSE}))
    assert first[0].checkpoint is not None
    _, second = train(file, task.model_copy(update={"resume_from": first[0].checkpoint.path}))
    assert [timeless(report) for report in [*first, *second]] == [timeless(report) for report in whole]
    ours, theirs = (last_network(root) for root in (tmp_path, tmp_path / "whole"))
    assert_same_tensors(ours, theirs)


def _train_on_ranks(ranks: Ranks, file: str, root: str, task: Any) -> list[dict[str, float]]:
    trainer = load_trainer(file)
    reports = Reports()
    trainer.fit(task, trainer.load(DataSpec()), ranks, reports)
    return [timeless(report) for report in reports]


def test_two_ranks_train_as_one(pair: RankPool, tmp_path: Path) -> None:
    file = own_file(tmp_path, NUMBERS, DATASETS, METRICS)
    file.write_text(file.read_text().replace("nn.Dropout(0.1)", "nn.Identity()"))
    task = task_of(tmp_path, file)
    _, alone = train(file, task)
    together, nothing = pair.run(_train_on_ranks, str(file), str(tmp_path), task)
    assert nothing == []
    for report, (ours, theirs) in enumerate(zip(alone, together, strict=True)):
        for name in ("loss", "r2", "largest", "items", "train_loss"):
            assert ours.metrics[name] == pytest.approx(theirs[name], abs=1e-5), (report, name)


@pytest.mark.parametrize("parallel", ["ddp", "pipeline"])
@pytest.mark.parametrize("items", [1, 9])
def test_own_metrics_are_those_of_one_rank_however_items_are_spread(
    pair: RankPool, tmp_path: Path, parallel: str, items: int
) -> None:
    datasets = f"def datasets(source):\n    return Noisy(0, 37), Noisy(1, {items})\n"
    file = own_file(tmp_path, VECTORS, datasets, LOSS, METRICS)
    file.write_text(file.read_text().replace("nn.Dropout(0.1)", "nn.Identity()"))
    task = task_of(tmp_path, file, epochs=1, parallel=parallel, precision="fp32")
    _, alone = train(file, task)
    together, nothing = pair.run(_train_on_ranks, str(file), str(tmp_path), task)
    assert nothing == []
    assert together[0]["items"] == items
    for name in ("loss", "largest", "items"):
        assert together[0][name] == pytest.approx(alone[0].metrics[name], abs=1e-5), name


@pytest.mark.parametrize("parallel", ["ddp", "fsdp", "pipeline"])
def test_loss_that_fails_on_one_rank_while_measuring_ends_all_ranks(
    pair: RankPool, tmp_path: Path, parallel: str
) -> None:
    loss = LOSS.replace(
        "    return", "    if not answers.requires_grad and len(targets) in (5, 9):\n        1 / 0\n    return"
    )
    file = own_file(tmp_path, VECTORS, DATASETS, loss)
    task = task_of(tmp_path, file, epochs=1, parallel=parallel, precision="fp32")
    errors = pair.run(_train_on_ranks, str(file), str(tmp_path), task)
    assert isinstance(errors[0], PeerFailedError) and "validation failed on rank 1: ZeroDivisionError" in str(errors[0])
    assert isinstance(errors[1], UserCodeError) and "ZeroDivisionError" in str(errors[1])


@pytest.mark.skipif(torch.cuda.is_available(), reason="CUDA is there")
def test_dataset_that_asks_for_cuda_where_there_is_none_is_told_by_its_name(tmp_path: Path) -> None:
    text = CLASSES.replace("int(x", "int(torch.zeros(1, device='cuda').sum() + x")
    data = "def datasets(source):\n    return torch.utils.data.Subset(Noisy(0, 37), range(30)), Noisy(1, 9)\n"
    file = own_file(tmp_path, text, data)
    with pytest.raises(UserCodeError) as caught:
        train(file, task_of(tmp_path, file))
    assert "the dataset Noisy asks for CUDA, which cannot be used here (" in str(caught.value)
    assert "; return CPU tensors, and move to the device in the training step" in str(caught.value)


def _measure_by_own_metrics(ranks: Ranks, forms: list[list[tuple[int, ...]]]) -> int:
    def count(answers: torch.Tensor, targets: torch.Tensor) -> dict[str, float]:
        return {"items": len(answers)}

    meter = OwnMeter(LossMeter(lambda answers, targets: answers.sum(dim=1), ranks.device), count)
    for form in forms[ranks.rank]:
        meter.add(torch.zeros(form), torch.zeros(form))
    return int(meter.total(ranks)["items"])


def test_ranks_without_an_item_measure_with_the_others_or_all_refuse(pair: RankPool) -> None:
    assert pair.run(_measure_by_own_metrics, [[], [(2, 3), (1, 3)]]) == [3, 3]
    for forms, words in (([[], []], "no item to measure"), ([[(1, 3)], [(1, 4)]], "several forms: float32 (3,) for")):
        for error in pair.run(_measure_by_own_metrics, forms):
            assert isinstance(error, UserCodeError) and words in str(error)


WRONG = "TARGET, OUT = lambda x: {} if x[0] > 1.0 else int(x.sum() > 0), 2\n"
TENSORS = """
def datasets(source):
    inputs = torch.zeros(4, 3)
    return TensorDataset(inputs, torch.tensor([0, 1, 1, 0])), TensorDataset(inputs, torch.tensor({}))
"""


@pytest.mark.parametrize(
    "parts, words",
    [
        ((WRONG.format(-100), DATASETS, "NUM_OUTPUTS = 2\n"), r"own\.py: train item \d+ has the target -100"),
        (
            (WRONG.format(5), DATASETS, "NUM_OUTPUTS = 2\n"),
            "has the target 5.*; allowed: whole numbers from 0 to 1, as",
        ),
        ((WRONG.format(1.5), DATASETS, "NUM_OUTPUTS = 2\n"), "has the target 1.5"),
        (
            (CLASSES, TENSORS.format([0, 1, 5, -1])),
            "own.py: validation item 2 has the target 5, item 3 has the target -1",
        ),
        ((CLASSES, TENSORS.format([0.0, 1.0, float("nan"), 1.0]).replace("nan", "float('nan')")), "item 2 has the tar"),
        ((NUMBERS.replace("x.sum(", "x.log().sum("), DATASETS), "train item .* has the target nan.*; allowed: finite"),
        (
            (WRONG.format(-1).replace("int(x.sum() > 0)", "-2"), DATASETS),
            "largest target of the train items is -1; cla",
        ),
    ],
    ids=["ignored by torch", "too large", "half", "tensors", "nan among classes", "nan", "no class"],
)
def test_wrong_target_is_told_with_split_and_item(tmp_path: Path, parts: tuple[str, ...], words: str) -> None:
    file = own_file(tmp_path, *parts)
    with pytest.raises(BadDataError, match=words):
        train(file, task_of(tmp_path, file))


def test_wrong_class_of_the_validation_items_is_told_when_they_are_read(tmp_path: Path) -> None:
    wrong = "class Wrong(Noisy):\n    def __getitem__(self, item):\n        return self.inputs[item], item\n"
    file = own_file(tmp_path, CLASSES, wrong, "def datasets(source):\n    return Noisy(0, 37), Wrong(1, 4)\n")
    with pytest.raises(BadDataError, match="validation item 2 has the target 2, item 3 has the target 3; allowed: wh"):
        train(file, task_of(tmp_path, file))


def test_own_loss_may_take_targets_that_are_no_classes(tmp_path: Path) -> None:
    loss = "def loss(answers, targets):\n    return nn.functional.cross_entropy(answers, targets, reduction='none')\n"
    file = own_file(tmp_path, WRONG.format(-100), DATASETS, loss, "NUM_OUTPUTS = 2\n")
    result, _ = train(file, task_of(tmp_path, file, epochs=1))
    assert result.outcome == "completed"


def test_classes_are_counted_after_their_change(tmp_path: Path) -> None:
    raw = (
        "raw = Noisy(0, 6)\nraw.targets, raw.target_transform = [-1, 5, -1, 5, 5, 5], lambda target: int(target > 0)\n"
    )
    file = own_file(tmp_path, CLASSES, raw, "def datasets(source):\n    return raw, raw\n")
    assert load_trainer(str(file)).load(DataSpec()).num_outputs == 2


@pytest.mark.parametrize(
    "parts, metric, words",
    [
        ((CLASSES, DATASETS, "METRICS = {'own_acc': 'maximize'}\n", METRICS_OF.format("{'own_ac': 1.0}")), "own_acc",
         "no metric 'own_acc' was measured after epoch 1; did you mean 'own_ac'.* measured: accuracy, "),
        ((CLASSES, DATASETS, "METRICS = {'own': 'maximize'}\n", METRICS_OF.format("{'own': '0.5'}")), "own",
         "no metric 'own' was measured.*what is no number"),
        ((NUMBERS.replace("x.sum(dim=0, keepdim=True)", "torch.ones(1)"), DATASETS), "r2", "no metric 'r2' was m"),
    ],
    ids=["not returned", "no number", "not defined"],
)  # fmt: skip
def test_objective_that_was_not_measured_is_told_with_what_was(
    tmp_path: Path, parts: tuple[str, ...], metric: str, words: str
) -> None:
    file = own_file(tmp_path, *parts)
    with pytest.raises(UserCodeError, match=words):
        train(file, task_of(tmp_path, file, metric=metric, direction="maximize"))


@pytest.mark.parametrize("parts", [(CLASSES,), (VECTORS, LOSS)], ids=["classes", "own loss"])
def test_balanced_classes_are_refused_with_the_way_out(tmp_path: Path, parts: tuple[str, ...]) -> None:
    file = own_file(tmp_path, *parts, DATASETS)
    with pytest.raises(
        UserCodeError, match=r"class_weights='balanced' needs the classes of all items .* weigh the class"
    ):
        train(file, task_of(tmp_path, file, class_weights="balanced"))


@pytest.mark.parametrize("protocol", [4, 5])
def test_arrays_of_a_file_can_be_carried_by_every_protocol(tmp_path: Path, protocol: int) -> None:
    datasets = "import numpy as np\ndef datasets(source):\n    data = [(np.full(3, i / 7), i % 2) for i in range(7)]\n"
    trainer = load_trainer(str(own_file(tmp_path, CLASSES, datasets + "    return data, data\n")))
    again = pickle.loads(pickle.dumps(trainer.load(DataSpec()), protocol=protocol))
    assert [item[0].tolist() for item in again.split("train")] == [[i / 7] * 3 for i in range(7)]


def test_datasets_can_be_read_by_another_process(tmp_path: Path) -> None:
    trainer = load_trainer(str(own_file(tmp_path, CLASSES, DATASETS)))
    data = trainer.load(DataSpec())
    again = pickle.loads(pickle.dumps(data))
    assert (again.fingerprint, again.num_outputs, again.input_shape) == (data.fingerprint, 2, (3,))
    assert torch.equal(again.split("train").inputs, data.split("train").inputs)


@pytest.mark.parametrize(
    "parts, kind, words",
    [
        ((CLASSES, "def datasets(source):\n    return Noisy(0, 3)\n"), UserCodeError, "needed: two or three datasets"),
        ((CLASSES, "def datasets(source):\n    return [1], 3\n"), UserCodeError, "the validation items are a int"),
        ((CLASSES, "def datasets(source):\n    return Noisy(0, 3), []\n"), BadDataError, "no validation items"),
        ((VECTORS, DATASETS), UserCodeError, "define loss"),
        ((CLASSES, DATASETS, "OUT = 3\n"), UserCodeError, r"logits of shape \(1, 2\)"),
        ((VECTORS, DATASETS, LOSS_OF.format("1.0")), UserCodeError, "gave float; needed: their mean"),
        ((VECTORS, DATASETS, LOSS, METRICS_OF.format("1")), UserCodeError, "gave 1; needed"),
        ((VECTORS, DATASETS, LOSS, METRICS_OF.format("1 / 0")), UserCodeError, r"own\.py, line \d+: Zero"),
        ((CLASSES.replace("int(", "1 // 0 + int("), DATASETS), UserCodeError, r"own\.py, line \d+: ZeroDivisionError"),
    ],
    ids=["one", "number", "empty", "no loss", "outputs", "loss", "metrics", "failing metrics", "failing item"],
)  # fmt: skip
def test_mistake_of_a_file_is_told_with_the_way_out(
    tmp_path: Path, parts: tuple[str, ...], kind: type[Exception], words: str
) -> None:
    file = own_file(tmp_path, *parts)
    with pytest.raises(kind, match=words):
        train(file, task_of(tmp_path, file))


def test_error_in_a_worker_has_its_line(tmp_path: Path) -> None:
    text = CLASSES.replace("int(", "(0 if torch.utils.data.get_worker_info() is None else 1 // 0) + int(")
    file = own_file(tmp_path, text, DATASETS)
    with pytest.raises(UserCodeError, match=r"own\.py, line \d+: ZeroDivisionError"):
        train(file, task_of(tmp_path, file, loader_workers=1))


def test_own_loss_leaves_no_parameter_that_does_nothing(tmp_path: Path) -> None:
    usual = load_trainer(str(own_file(tmp_path / "usual", CLASSES, DATASETS)))
    own = load_trainer(str(own_file(tmp_path / "own", VECTORS, DATASETS, LOSS)))
    assert {"label_smoothing", "loss"} <= usual.hyperparameters - own.hyperparameters
    assert "augmentation" not in usual.hyperparameters
    assert usual.measured(DataSpec())["accuracy"] == "maximize"
    assert own.measured(DataSpec()) == {"loss": "minimize"}
