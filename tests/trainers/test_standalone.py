"""Trains one configuration without a search: everything that can train, from Python and from the command line."""

import dataclasses
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.full_disk import SmallDisk, small_disk
from tests.test_documentation import PAGES, blocks
from tests.trainers.custom.own import write
from tests.trainers.training import assert_same_tensors
from trainers.__main__ import _parser, main
from trainers.checkpoint import read_checkpoint, write_checkpoint
from trainers.kept_checkpoints import UsedFolderError
from trainers.reporting import Report
from trainers.standalone import InvalidTrainingError, train

__all__ = ["small_disk"]

SMALL = {"channels": 8, "batch_size": 128}
OWN_FIT = """
    from search_spaces import Float, SearchSpace
    SPACE = SearchSpace("own", {"x": Float(low=0.0, high=1.0)}, defaults={"x": 0.5})
    METRICS = {"gain": "maximize"}
    def fit(context):
        total = 0.0 if context.state is None else context.state["total"]
        for epoch in range(context.start_epoch, context.epochs):
            total += context.configuration["x"] * context.configuration.get("factor", 1)
            context.report({"gain": total}, {"total": total})
    def test(context):
        return {"gain": -context.state["total"]}
    """
SPACE_ALONE = """
    from search_spaces import Float, SearchSpace
    SPACE = SearchSpace("alone", {"x": Float(low=0.0, high=1.0)})
    """
SCRIPT = """
    import argparse, json, os, pathlib
    parser = argparse.ArgumentParser()
    parser.add_argument("--x", type=float)
    parser.add_argument("--epochs", type=int)
    x = parser.parse_args().x
    resumed = os.environ["AUTOML_RESUME_FROM"]
    total = float(pathlib.Path(resumed).read_text()) if resumed else 0.0
    for epoch in range(int(os.environ["AUTOML_START_EPOCH"]), int(os.environ["AUTOML_EPOCHS"])):
        total += x
        pathlib.Path(os.environ["AUTOML_CHECKPOINT_DIR"], f"{epoch}.txt").write_text(str(total))
        print(json.dumps({"epoch": epoch + 1, "loss": total, "checkpoint": f"{epoch}.txt"}), flush=True)
    """
OWN_MODULE = """
    import torch
    from search_spaces import Integer, SearchSpace
    SPACE = SearchSpace("line", {"batch_size": Integer(low=4, high=64)}, defaults={"batch_size": 8})
    class Line(torch.utils.data.Dataset):
        def __len__(self):
            return 24
        def __getitem__(self, number):
            x = torch.tensor([number / 24.0])
            return x, 2.0 * x
    def datasets(source):
        return Line(), Line()
    def build_model(configuration):
        return torch.nn.Linear(1, 1)
    """


class Stop(Exception):
    """Ends a training from outside."""


def stop_after(epoch: int) -> Any:
    def stop(report: Report) -> None:
        if report.epoch == epoch:
            raise Stop

    return stop


def problems_of(*arguments: Any, **fields: Any) -> str:
    with pytest.raises(InvalidTrainingError) as caught:
        train(*arguments, **fields)
    return str(caught.value)


def test_train_keeps_the_best_and_the_last_epoch_and_measures_the_test_split(tmp_path: Path) -> None:
    seen: list[Report] = []
    trained = train("nas_small", settings={**SMALL, "epochs": 2}, folder=tmp_path, device="cpu", on_report=seen.append)
    best = max(seen, key=lambda report: report.metrics["accuracy"])
    assert trained.best is not None and trained.last is not None
    assert trained.metrics == best.metrics
    assert read_checkpoint(trained.best).epoch == best.epoch
    assert read_checkpoint(trained.last).epoch == 2
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == {trained.best.name, trained.last.name}
    assert trained.test is not None
    assert abs(trained.test["accuracy"] - trained.metrics["accuracy"]) < 0.15


def test_two_ranks_train_as_one_and_a_resumed_training_as_an_unbroken_one(tmp_path: Path) -> None:
    pair = train("nas_small", settings={**SMALL, "epochs": 1}, folder=tmp_path / "pair", device="cpu", ranks=2)
    alone = train("nas_small", settings={**SMALL, "epochs": 1}, folder=tmp_path / "alone", device="cpu")
    assert pair.result.facts["world_size"] == 2
    # Not equal: batch normalisation sees half a batch on each rank.
    assert pair.metrics["train_loss"] == pytest.approx(alone.metrics["train_loss"], rel=0.1)

    settings = {**SMALL, "epochs": 2}
    whole = train("nas_small", settings=settings, folder=tmp_path / "whole", device="cpu")
    with pytest.raises(Stop):
        train("nas_small", settings=settings, folder=tmp_path / "cut", device="cpu", on_report=stop_after(1))
    resumed = train("nas_small", settings=settings, folder=tmp_path / "cut", device="cpu", resume=True)
    assert whole.last is not None and resumed.last is not None
    left, right = read_checkpoint(whole.last), read_checkpoint(resumed.last)
    assert_same_tensors(dict(left.network), dict(right.network))
    assert_same_tensors(dict(left.optimization), dict(right.optimization))


def test_training_may_have_a_value_that_its_space_does_not_search(tmp_path: Path) -> None:
    settings = {**SMALL, "epochs": 1, "optimizer": "muon", "learning_rate": "0.5"}
    train("nas_small", settings=settings, folder=tmp_path, device="cpu")
    record = json.loads((tmp_path / "training.json").read_text())["identity"]
    assert (record["settings"]["optimizer"], record["settings"]["learning_rate"]) == ("muon", 0.5)
    assert (record["configuration"]["optimizer"], record["configuration"]["learning_rate"]) == ("muon", 0.5)
    assert record["built_with"]["optimizer"] == "adamw"
    text = problems_of("nas_small", settings={"optimizer": "moun", "channels": 7}, folder=tmp_path / "b")
    assert re.search(r"optimizer='moun' is not allowed: input should be 'sgd', .* or 'muon'", text)
    assert "channels=7 is outside [8, 24]" in text


SPACE_OF_IMAGES = """
    from search_spaces import Categorical, SearchSpace
    SPACE = SearchSpace("own", {"optimizer": Categorical(choices=(CHOICES))}, defaults={"optimizer": "adamw"})
    def build_model(configuration, input_shape, num_classes):
        from torch import nn
        assert configuration["optimizer"] in (CHOICES), "a space is never given what it does not know"
        return nn.Sequential(nn.Flatten(), nn.Linear(64, num_classes))
    """


def space_of_images(folder: Path, *choices: str) -> str:
    return str(write(folder, "own.py", SPACE_OF_IMAGES.replace("CHOICES", repr(choices)[1:-1])))


def test_checkpoint_and_record_tell_what_was_asked_for_and_apart_what_stands_for_it(tmp_path: Path) -> None:
    space, folder = space_of_images(tmp_path, "adamw", "sgd"), tmp_path / "run"
    trained = train(space, settings={"epochs": 1, "optimizer": "muon"}, folder=folder, device="cpu")
    assert trained.last is not None
    blueprint = read_checkpoint(trained.last).blueprint
    assert (blueprint["configuration"], blueprint["built_with"]) == ({"optimizer": "muon"}, {"optimizer": "adamw"})
    student = {"epochs": 1, "optimizer": "sgd", "teacher": str(trained.last)}
    assert train(space, settings=student, folder=tmp_path / "student", device="cpu").result.outcome == "completed"
    space_of_images(tmp_path, "adamw", "sgd", "muon")  # the space learns what it did not know
    resumed = train(space, settings={"epochs": 2, "optimizer": "muon"}, folder=folder, device="cpu", resume=True)
    assert resumed.result.epoch == 2


@pytest.mark.parametrize("optimizer", ["muon", "sgd"])
def test_record_and_checkpoint_of_an_older_release_are_gone_on_with(tmp_path: Path, optimizer: str) -> None:
    space, folder = space_of_images(tmp_path, "adamw", "sgd"), tmp_path / "run"
    settings = {"optimizer": optimizer}
    last = train(space, settings={**settings, "epochs": 1}, folder=folder, device="cpu").last
    assert last is not None
    record = json.loads((folder / "training.json").read_text())
    checkpoint = read_checkpoint(last)
    stand_ins = record["identity"].pop("built_with")
    record["identity"]["configuration"] |= stand_ins
    blueprint = {**checkpoint.blueprint, "configuration": record["identity"]["configuration"]}
    blueprint.pop("built_with")
    older = dataclasses.replace(checkpoint, blueprint=blueprint)
    file = write_checkpoint(older, str(folder), str(last.relative_to(folder)))
    record["kept"][0]["file"] = dataclasses.asdict(file)
    (folder / "training.json").write_text(json.dumps(record))
    with pytest.raises(UsedFolderError, match=rf"training; optimizer: there '{optimizer}', now 'lion'; give"):
        train(space, settings={"optimizer": "lion", "epochs": 2}, folder=folder, device="cpu", resume=True)
    assert train(space, settings={**settings, "epochs": 2}, folder=folder, device="cpu", resume=True).result.epoch == 2


def test_command_prints_the_line_of_the_log_and_what_an_epoch_is_worth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tensorboard")
    small = ["--set", "channels=8", "--set", "batch_size=128"]
    arguments = ["--space", "nas_small", "--folder", str(tmp_path), "--device", "cpu", "--epochs", "1", *small]
    assert main([*arguments, "--profile", "--tensorboard"]) == 0
    out = capsys.readouterr().out
    assert re.match(r"epoch 1/1 loss [\d.]+ lr \S+ cpu \d+ % mem \d+\.\d/\d+\.\d GiB accuracy 0\.\d+\n", out)
    assert "completed after 1 epoch in " in out
    assert f"profile: {tmp_path / 'checkpoints' / 'profile-operators.txt'}\n" in out
    assert f"tensorboard: {tmp_path / 'tensorboard'}\n" in out


def test_longer_resumption_says_that_it_is_not_the_unbroken_training(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    train("nas_small", settings={**SMALL, "epochs": 1}, folder=tmp_path, device="cpu", resume=True)
    assert not caplog.messages
    train("nas_small", settings={**SMALL, "epochs": 2}, folder=tmp_path, device="cpu", resume=True)
    (told,) = [text for text in caplog.messages if "began with epochs=1 and goes on with epochs=2" in text]
    assert "(cosine) is drawn anew" in told
    caplog.clear()
    train("nas_small", settings={**SMALL, "epochs": 2}, folder=tmp_path, device="cpu", resume=True)
    assert not [text for text in caplog.messages if "drawn anew" in text]


def test_fit_of_a_file_trains_goes_on_and_is_tested(tmp_path: Path) -> None:
    space = str(write(tmp_path, "own.py", OWN_FIT))
    settings = {"x": "0.25", "factor": "2", "epochs": 4}
    with pytest.raises(Stop):
        train(space, folder=tmp_path / "run", settings=settings, device="cpu", on_report=stop_after(2))
    trained = train(space, folder=tmp_path / "run", settings=settings, device="cpu", resume=True)
    assert trained.metrics["gain"] == 4 * 0.25 * 2
    assert trained.test == {"gain": -2.0}
    assert trained.best == trained.last == tmp_path / "run" / "checkpoints" / "epoch-0004.pt"


def test_fit_that_keeps_no_state_ends_without_a_checkpoint(tmp_path: Path) -> None:
    space = str(write(tmp_path, "own.py", OWN_FIT.replace(', {"total": total})', ")")))
    trained = train(space, folder=tmp_path / "run", settings={"epochs": 2}, device="cpu")
    assert (trained.best, trained.last, trained.test) == (None, None, None)
    assert trained.metrics["gain"] == 1.0
    again = train(space, folder=tmp_path / "run", settings={"epochs": 2}, device="cpu", resume=True)
    assert again.metrics["gain"] == 1.0


def test_trainer_may_be_another_file_than_the_space(tmp_path: Path) -> None:
    space, trainer = write(tmp_path, "space.py", SPACE_ALONE), write(tmp_path, "own.py", OWN_FIT)
    settings = {"x": 0.5, "epochs": 1}
    trained = train(str(space), trainer=str(trainer), folder=tmp_path / "run", settings=settings, device="cpu")
    assert trained.metrics["gain"] == 0.5


def test_script_trains_and_goes_on_from_its_own_checkpoint(tmp_path: Path) -> None:
    space = str(write(tmp_path, "space.py", SPACE_ALONE))
    script = f"{sys.executable} {write(tmp_path, 'train.py', SCRIPT)}"
    settings = {"x": 0.5, "epochs": 3, "metric": "loss"}
    with pytest.raises(Stop):
        train(space, script=script, folder=tmp_path / "run", settings=settings, on_report=stop_after(2))
    trained = train(space, script=script, folder=tmp_path / "run", settings=settings, resume=True)
    assert trained.result.epoch == 3
    assert trained.metrics["loss"] == 0.5  # the smallest, of the first epoch: no direction was given
    assert trained.last is not None
    assert trained.last.read_bytes().endswith(b"\n1.5")


@pytest.mark.slow
def test_module_of_a_file_trains_on_two_ranks_that_read_by_workers(tmp_path: Path) -> None:
    space = str(write(tmp_path, "own.py", OWN_MODULE))
    settings = {"epochs": 1, "loader_workers": 1, "learning_rate": "0.1"}
    trained = train(space, folder=tmp_path / "run", settings=settings, ranks=2, device="cpu")
    assert trained.result.facts["world_size"] == 2
    assert trained.best is not None


def test_training_is_drawn_and_profiled_on_wish(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    settings = {**SMALL, "epochs": 1}
    train("nas_small", settings=settings, folder=tmp_path, device="cpu", tensorboard=True, profile=True)
    assert any((tmp_path / "tensorboard").iterdir())
    assert "conv" in (tmp_path / "checkpoints" / "profile-operators.txt").read_text()


def test_earlier_training_is_not_overwritten_and_another_one_not_gone_on_with(tmp_path: Path) -> None:
    space = str(write(tmp_path, "own.py", OWN_FIT))
    train(space, settings={"epochs": 1}, folder=tmp_path / "run", device="cpu")
    assert "go on with it (--resume)" in problems_of(space, folder=tmp_path / "run", device="cpu")
    with pytest.raises(ValueError, match=r"of another training; x: there 0.5, now 0.7;"):
        train(space, settings={"x": 0.7}, folder=tmp_path / "run", device="cpu", resume=True)


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    wrong = {"channels": 7, "epocs": 3, "optimizer": "magic", "patience": -1, "metric": "acuracy"}
    text = problems_of("nas_small", "nothing.npz", settings=wrong, folder=tmp_path, device="gpu", ranks=0)
    for part in (
        "did you mean 'epochs'",
        "channels=7",
        "optimizer='magic'",
        "patience=-1",
        "did you mean 'accuracy'",
        "device: no device 'gpu'",
        "ranks: 0 is not allowed",
        "data: no data set 'nothing.npz'",
    ):
        assert part in text
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"trainer": "nowhere.py"}, "nowhere.py'; there is no such file"),
        ({"trainer": "image_classification"}, "has no hyperparameter 'x'"),
        ({"script": "no-such-program x"}, "script: there is no program 'no-such-program'"),
        ({"script": f"{sys.executable} -c 1", "trainer": "image_classification"}, "there is a script besides"),
        ({"script": f"{sys.executable} -c 1"}, "metric: must be given"),
        ({"script": f"{sys.executable} -c 1", "settings": {"metric": "kpi"}}, "direction: must be given"),
        (
            {"script": f"{sys.executable} -c {{lr}} {{x}}", "settings": {"metric": "loss"}},
            "script: no parameter 'lr' for {lr}",
        ),
        ({"script": f"{sys.executable} -c 1", "ranks": 2}, "ranks: a script is one process"),
        ({"script": f"{sys.executable} -c 1", "settings": {"parallel": "fsdp"}}, "parallel: fsdp is for networks"),
        ({"script": f"{sys.executable} -c 1", "profile": True}, "profile: only networks"),
        ({"trainer": "tabular_regression", "settings": {}}, "has no hyperparameter 'x'"),
    ],
)
def test_training_that_cannot_be_is_refused(tmp_path: Path, fields: dict[str, Any], words: str) -> None:
    space = str(write(tmp_path, "space.py", SPACE_ALONE))
    assert words in problems_of(space, folder=tmp_path / "run", device="cpu", **fields)


def test_command_prints_json_and_says_what_is_wrong_with_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--space", "nas_small", "--folder", str(tmp_path / "run"), "--device", "cpu"]
    settings = ["--epochs", "1", "--set", "channels=8", "--set", "learning_rate=1e-2"]
    assert main([*arguments, *settings, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["outcome"] == "completed"
    assert document["test"]["accuracy"] > 0.2
    assert Path(document["best"]).is_file()

    other = ["--space", "nas_small", "--folder", str(tmp_path / "other")]
    for wrong, words in (
        ([*arguments, "--set", "epochs"], "give NAME=VALUE"),
        ([*arguments, "--set", "epochs=1", "--epochs", "2"], "epochs is given twice"),
        (["--space", "nas_smal", "--folder", str(tmp_path / "other")], "did you mean 'nas_small'"),
        ([*other, "--data", "nothing.npz"], "no data set 'nothing.npz'"),
        ([*arguments, "--validation-fraction", "2"], "validation"),
        ([*other, "--folder", str(tmp_path / "run" / "training.json")], "is a file; give a folder"),
    ):
        assert main(wrong) == 2
        assert words in capsys.readouterr().err


def test_command_says_in_a_sentence_why_a_training_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    space = str(write(tmp_path, "own.py", OWN_FIT.replace("total = 0.0", "total = 1 / 0")))
    arguments = ["--space", space, "--folder", str(tmp_path / "run"), "--device", "cpu"]
    assert main(arguments) == 1
    assert capsys.readouterr().err == "failed (user_error): own.py, line 6: ZeroDivisionError: division by zero\n"
    assert main([*arguments, "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_full_disk_is_named_and_the_training_goes_on_when_there_is_room(
    small_disk: SmallDisk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    space = str(write(tmp_path, "own.py", OWN_FIT))
    folder = small_disk.folder / "run"
    with pytest.raises(Stop):
        train(space, folder=folder, settings={"epochs": 3}, device="cpu", on_report=stop_after(1))
    small_disk.fill()
    arguments = ["--space", space, "--folder", str(folder), "--device", "cpu", "--epochs", "3", "--resume"]
    assert main(arguments) == 1
    assert "failed (disk_full): [Errno 28] No space left on device" in capsys.readouterr().err
    small_disk.make_room()
    assert main(arguments) == 0
    assert "epoch 2/3 gain 1 " in capsys.readouterr().out


def test_commands_of_the_documentation_have_flags_that_exist() -> None:
    lines = [
        line.removeprefix("$ ").partition("-m trainers ")[2]
        for page in PAGES
        for language, text in blocks(page)
        if language in ("", "sh", "bash", "shell", "console")
        for line in text.splitlines()
        if "-m trainers " in line
    ]
    assert lines
    for line in lines:
        _parser().parse_args(shlex.split(line, comments=True))


def test_a_resumed_training_keeps_its_settings_but_may_be_computed_otherwise(tmp_path: Path) -> None:
    settings = {**SMALL, "optimizer": "sgd"}
    train("nas_small", settings={**settings, "epochs": 1}, folder=tmp_path, device="cpu")
    changed = {**settings, "epochs": 2, "momentum": 0.5}
    with pytest.raises(UsedFolderError, match=r"momentum: there 0\.9, now 0\.5.*give another folder"):
        train("nas_small", settings=changed, folder=tmp_path, device="cpu", resume=True)
    otherwise = {**settings, "epochs": 2, "accumulate": 2, "patience": 5}
    trained = train("nas_small", settings=otherwise, folder=tmp_path, device="cpu", resume=True)
    assert trained.result.epoch == 2


def test_a_failed_training_is_told_as_json_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """
        from search_spaces import Float, SearchSpace
        SPACE = SearchSpace("own", {"x": Float(low=0.0, high=1.0)}, defaults={"x": 0.5})
        METRICS = {"accuracy": "maximize"}
        def fit(context):
            context.report({"accuracy": float("nan")})
        """
    space = str(write(tmp_path, "own.py", text))
    assert main(["--space", space, "--folder", str(tmp_path / "run"), "--device", "cpu", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["outcome"], document["cause"]) == ("failed", "non_finite")
    assert "accuracy is nan" in document["message"]
