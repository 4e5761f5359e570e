import pickle
from pathlib import Path

import pytest
import torch

from search_spaces.discovery import PluginImportError
from tests.trainers.custom.own import Reports, own_task, train, write
from tests.trainers.rank_pool import RankPool
from trainers.checkpoint import read_checkpoint
from trainers.config import EvaluateTask
from trainers.data.spec import DataSpec
from trainers.distributed import Ranks
from trainers.errors import (
    DamagedCheckpointError,
    InvalidTrainerError,
    NonFiniteLossError,
    PeerFailedError,
    UserCodeError,
)
from trainers.reporting import Decision
from trainers.tasks import load_trainer

WALK = """
    import random
    import numpy as np
    import torch

    METRICS = {"accuracy": "maximize"}

    def fit(context):
        weight = torch.zeros(()) if context.state is None else context.state["weight"]
        for epoch in range(context.start_epoch, context.epochs):
            weight = weight + context.configuration["x"]
            context.report({"accuracy": weight}, {"weight": weight, "epoch": np.float64(epoch)})

    def test(context):
        return {"accuracy": context.state["weight"], "epochs": context.start_epoch}
    """


def fit_of(body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f"import torch\n\ndef fit(context):\n{lines}\n"


def test_fit_reports_every_epoch_with_a_checkpoint(tmp_path: Path) -> None:
    task = own_task(tmp_path)
    result, reports = train(write(tmp_path, "walk.py", WALK), task)
    assert (result.outcome, result.epoch, result.facts["best_epoch"]) == ("completed", 3, 3)
    assert [(report.epoch, report.metrics["accuracy"]) for report in reports] == [(1, 0.5), (2, 1.0), (3, 1.5)]
    assert reports[-1].checkpoint is not None
    kept = read_checkpoint(tmp_path / "artifacts" / reports[-1].checkpoint.path)
    assert kept.optimization["state"] == {"weight": torch.tensor(1.5), "epoch": 2.0}


def test_fit_is_given_lists_in_place_of_their_labels(tmp_path: Path) -> None:
    space = write(
        tmp_path,
        "own.py",
        """
        from search_spaces import Categorical, SearchSpace
        SPACE = SearchSpace("own", {"kernel": Categorical(choices=((3, 3), (3, 5)))})
        """,
    )
    file = write(tmp_path, "f.py", fit_of("context.report({'accuracy': float(context.configuration['kernel'][1])})"))
    _, reports = train(file, own_task(tmp_path, space=str(space), configuration={"kernel": "3x5"}, epochs=1))
    assert reports[0].metrics["accuracy"] == 5.0


def test_resumed_fit_reports_what_the_uninterrupted_one_does(tmp_path: Path) -> None:
    file = write(tmp_path, "walk.py", WALK)
    _, whole = train(file, own_task(tmp_path / "whole"))
    result, first = train(file, own_task(tmp_path), Reports({1: Decision.PAUSE}))
    assert (result.outcome, result.epoch) == ("paused", 1)
    assert first[0].checkpoint is not None
    result, second = train(file, own_task(tmp_path, resume_from=first[0].checkpoint.path))
    assert (result.outcome, result.epoch) == ("completed", 3)
    values = [report.metrics["accuracy"] for report in [*first, *second]]
    assert values == [report.metrics["accuracy"] for report in whole]


def test_evaluation_hands_the_state_to_test(tmp_path: Path) -> None:
    file = write(tmp_path, "walk.py", WALK)
    task = own_task(tmp_path)
    _, reports = train(file, task)
    assert reports[1].checkpoint is not None
    trainer = load_trainer(str(file))
    assert trainer.can_evaluate()
    evaluation = EvaluateTask(
        space=task.space, configuration=task.configuration, artifacts_root=task.artifacts_root,
        checkpoint=reports[1].checkpoint.path,
    )  # fmt: skip
    measured = trainer.evaluate(evaluation, trainer.load(DataSpec()), Ranks.alone("cpu"))
    assert measured == {"accuracy": 1.0, "epochs": 2.0}


@pytest.mark.parametrize("decision, outcome", [(Decision.STOP, "stopped"), (Decision.PAUSE, "paused")])
def test_decision_leaves_fit_even_where_it_catches_exceptions(tmp_path: Path, decision: Decision, outcome: str) -> None:
    body = (
        "for _ in range(9):\n    try:\n        context.report({'accuracy': 1.0})\n    except Exception:\n        pass"
    )
    result, reports = train(write(tmp_path, "f.py", fit_of(body)), own_task(tmp_path), Reports({2: decision}))
    assert (result.outcome, result.epoch, len(reports)) == (outcome, 2, 2)


def test_fit_that_reports_on_and_on_ends_after_its_epochs(tmp_path: Path) -> None:
    file = write(tmp_path, "f.py", fit_of("while True:\n    context.report({'accuracy': 1.0})"))
    result, reports = train(file, own_task(tmp_path))
    assert (result.outcome, len(reports)) == ("completed", 3)


def test_patience_ends_fit(tmp_path: Path) -> None:
    file = write(tmp_path, "f.py", fit_of("while True:\n    context.report({'accuracy': 1.0})"))
    result, _ = train(file, own_task(tmp_path, epochs=50, patience=2))
    assert (result.outcome, result.epoch, result.facts["best_epoch"]) == ("completed", 3, 1)


@pytest.mark.parametrize(
    "body, words",
    [
        ("return", "without a report; call context.report({'accuracy'"),
        ("x = 1\nraise ZeroDivisionError('no')", "f.py, line 5: ZeroDivisionError: no"),
        ("context.report({'acuracy': 1})", "did you mean 'acuracy'?"),
        ("context.report({'accuracy': True})", "accuracy=True, which is no number"),
        ("context.report({'accuracy': 'high'})", "accuracy='high', which is no number"),
        ("context.report(0.5)", "needed: name -> number"),
        ("context.report({'accuracy': 1}, {'a': [object()], 'b': {1.5: 2}})", "state['a'][0] is of type object; state"),
        ("import numpy\ncontext.report({'accuracy': 1}, numpy.zeros(3))", "torch.from_numpy"),
    ],
    ids=["silent", "raises", "misspelt", "truth", "text", "number", "state", "array"],
)  # fmt: skip
def test_mistake_in_fit_is_told_with_advice(tmp_path: Path, body: str, words: str) -> None:
    with pytest.raises(UserCodeError) as caught:
        train(write(tmp_path, "f.py", fit_of(body)), own_task(tmp_path))
    assert words in str(caught.value)


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_objective_that_left_the_numbers_is_its_own_cause(tmp_path: Path, value: str) -> None:
    with pytest.raises(NonFiniteLossError, match=f"accuracy is {value} after epoch 1"):
        train(write(tmp_path, "f.py", fit_of(f"context.report({{'accuracy': float('{value}')}})")), own_task(tmp_path))


def test_fit_is_seeded_and_leaves_the_generators_alone(tmp_path: Path) -> None:
    body = "import random, numpy\ncontext.report({'accuracy': random.random() + numpy.random.rand() + torch.rand(())})"
    file = write(tmp_path, "f.py", fit_of(body))
    torch.manual_seed(1)
    before = torch.get_rng_state()
    values = [train(file, own_task(tmp_path, epochs=1, seed=seed))[1][0].metrics["accuracy"] for seed in (1, 1, 2)]
    assert values[0] == values[1] != values[2]
    assert torch.equal(torch.get_rng_state(), before)


def test_data_of_a_class_in_the_file_can_be_read_by_another_process(tmp_path: Path) -> None:
    text = """
        class Rows:
            def __init__(self, source):
                self.source = source

        def load(source):
            return Rows(source)

        def fit(context):
            context.report({"accuracy": len(context.data.source)})
        """
    trainer = load_trainer(str(write(tmp_path, "rows.py", text)))
    data = pickle.loads(pickle.dumps(trainer.load(DataSpec(source="somewhere"))))
    reports = Reports()
    trainer.fit(own_task(tmp_path, epochs=1), data, Ranks.alone("cpu"), reports)
    assert reports[0].metrics["accuracy"] == 9.0
    assert trainer.fingerprint(data) == trainer.fingerprint(trainer.load(DataSpec(source="somewhere")))


@pytest.mark.parametrize(
    "text, words",
    [
        ("x = 1\n", "needed: fit"),
        ("METRICS = {'a': 'up'}\ndef fit(context): pass\n", "maximize or minimize"),
    ],
)
def test_file_without_a_training_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InvalidTrainerError, match=words):
        load_trainer(str(write(tmp_path, "f.py", text)))


@pytest.mark.parametrize("text", ["\nimport no_such_thing\n", "\ndef fit(context:\n"], ids=["import", "syntax"])
def test_file_that_cannot_be_imported_is_told_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(PluginImportError, match=r"f\.py, line 2: (ModuleNotFound|Syntax)Error"):
        load_trainer(str(write(tmp_path, "f.py", text)))


def test_changed_file_is_imported_anew(tmp_path: Path) -> None:
    for number in (1, 2):
        file = write(tmp_path, "f.py", fit_of(f"context.report({{'accuracy': {number}.0}})"))
        _, reports = train(file, own_task(tmp_path, epochs=1))
        assert reports[0].metrics["accuracy"] == number


def _fit_on_ranks(ranks: Ranks, file: str, root: str) -> tuple[str, list[int], float]:
    trainer = load_trainer(file)
    reports = Reports({2: Decision.STOP})
    result = trainer.fit(own_task(Path(root)), trainer.load(DataSpec()), ranks, reports)
    best = result.facts["best_value"]
    assert isinstance(best, float)
    return result.outcome, [report.epoch for report in reports], best


def test_ranks_leave_fit_together_and_agree_on_rank_0(pair: RankPool, tmp_path: Path) -> None:
    body = "if context.rank == 0:\n    print(context.epochs, context.configuration, context.world_size)\nwhile True:\n"
    file = write(tmp_path, "f.py", fit_of(body + "    context.report({'accuracy': 1.0 + context.rank})"))
    assert pair.run(_fit_on_ranks, str(file), str(tmp_path)) == [("stopped", [1, 2], 1.0), ("stopped", [], 1.0)]


@pytest.mark.parametrize(
    "body, words",
    [
        ("if context.rank == 0:\n    context.report({'accuracy': 1.0})", "rank 0 reported epoch 1; rank 1 left fit"),
        ("context.report({'acc': 1.0})", "accuracy"),
    ],
    ids=["rank 0 alone", "wrong on rank 0"],
)
def test_ranks_that_report_unlike_all_end(pair: RankPool, tmp_path: Path, body: str, words: str) -> None:
    first, second = pair.run(_fit_on_ranks, str(write(tmp_path, "f.py", fit_of(body))), str(tmp_path))
    assert words in str(first)
    assert isinstance(second, Exception)


def _go_on_on_ranks(ranks: Ranks, file: str, root: str, path: str) -> str:
    trainer = load_trainer(file)
    # Rank 1 looks where nothing is, as on a machine without the shared folder.
    task = own_task(Path(root) / ("" if ranks.is_first else "elsewhere"), resume_from=path)
    return trainer.fit(task, trainer.load(DataSpec(source="digits")), ranks, Reports()).outcome


def test_ranks_of_which_one_cannot_read_the_checkpoint_all_end(pair: RankPool, tmp_path: Path) -> None:
    file = write(tmp_path, "walk.py", WALK)
    _, first = train(file, own_task(tmp_path), Reports({1: Decision.PAUSE}))
    assert first[0].checkpoint is not None
    ours, theirs = pair.run(_go_on_on_ranks, str(file), str(tmp_path), first[0].checkpoint.path)
    assert isinstance(ours, PeerFailedError) and "setting up the training failed on rank 1" in str(ours)
    assert isinstance(theirs, DamagedCheckpointError)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_fit_leaves_the_generator_of_its_gpu_as_it_was(tmp_path: Path) -> None:
    file = write(tmp_path, "f.py", fit_of("torch.rand(3, device='cuda')\ncontext.report({'accuracy': 1.0})"))
    trainer = load_trainer(str(file))
    before = torch.cuda.get_rng_state()
    trainer.fit(own_task(tmp_path, epochs=1), trainer.load(DataSpec()), Ranks.alone("cuda"), Reports())
    assert torch.equal(torch.cuda.get_rng_state(), before)


def test_arrays_that_load_returns_can_be_carried_by_every_protocol(tmp_path: Path) -> None:
    load = "import numpy as np\n\ndef load(source):\n    return np.arange(6.0).reshape(2, 3)\n"
    data = load_trainer(str(write(tmp_path, "f.py", load + fit_of("pass")))).load(DataSpec())
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(data, protocol=protocol))
        assert again.content.value.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
