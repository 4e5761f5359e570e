import json
from pathlib import Path

import pytest

from tests.trainers.training import assert_same_tensors
from trainers.__main__ import main
from trainers.checkpoint import read_checkpoint
from trainers.kept_checkpoints import UsedFolderError
from trainers.reporting import Report
from trainers.standalone import InvalidTrainingError, train

SMALL = {"channels": 8, "batch_size": 128}


def test_train_keeps_the_best_and_the_last_epoch_and_measures_the_test_split(tmp_path: Path) -> None:
    seen: list[Report] = []
    trained = train("nas_small", settings={**SMALL, "epochs": 2}, folder=tmp_path, device="cpu", on_report=seen.append)
    best = max(seen, key=lambda report: report.metrics["accuracy"])
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

    whole = train("nas_small", settings={**SMALL, "epochs": 2}, folder=tmp_path / "whole", device="cpu")

    class Stop(Exception):
        pass

    def stop(report: Report) -> None:
        raise Stop

    with pytest.raises(Stop):
        train("nas_small", settings={**SMALL, "epochs": 2}, folder=tmp_path / "cut", device="cpu", on_report=stop)
    resumed = train("nas_small", settings={**SMALL, "epochs": 2}, folder=tmp_path / "cut", device="cpu", resume=True)
    left, right = read_checkpoint(whole.last), read_checkpoint(resumed.last)
    assert_same_tensors(dict(left.network), dict(right.network))
    assert_same_tensors(dict(left.optimization), dict(right.optimization))


def test_an_earlier_training_is_not_overwritten(tmp_path: Path) -> None:
    train("nas_small", settings={**SMALL, "epochs": 1}, folder=tmp_path, device="cpu")
    with pytest.raises(UsedFolderError, match="--resume"):
        train("nas_small", settings={**SMALL, "epochs": 1}, folder=tmp_path, device="cpu")


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    wrong = {"channels": 7, "epocs": 3, "optimizer": "magic", "patience": -1, "metric": "acuracy"}
    with pytest.raises(InvalidTrainingError) as caught:
        train("nas_small", settings=wrong, folder=tmp_path)
    text = str(caught.value)
    for part in ("did you mean 'epochs'", "channels=7", "optimizer='magic'", "patience=-1", "did you mean 'accuracy'"):
        assert part in text
    assert not any(tmp_path.iterdir())


def test_command_prints_json_and_says_what_is_wrong_with_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--space", "nas_small", "--folder", str(tmp_path / "run"), "--device", "cpu"]
    settings = ["--set", "epochs=1", "--set", "channels=8", "--set", "learning_rate=1e-2"]
    assert main([*arguments, *settings, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["outcome"] == "completed"
    assert document["test"]["accuracy"] > 0.2
    assert Path(document["best"]).is_file()

    assert main([*arguments, "--set", "epochs"]) == 2
    assert "give NAME=VALUE" in capsys.readouterr().err
    assert main(["--space", "nas_smal", "--folder", str(tmp_path / "other")]) == 2
    assert "did you mean 'nas_small'" in capsys.readouterr().err
    assert main(["--space", "nas_small", "--folder", str(tmp_path / "other"), "--data", "nothing.npz"]) == 2
    assert "no data set 'nothing.npz'" in capsys.readouterr().err
    assert main([*arguments, "--validation-fraction", "2"]) == 2
    assert "validation" in capsys.readouterr().err
