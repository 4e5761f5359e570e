"""A search whose trainings are looked into: TensorBoard, the profiler, and trials that would not fit."""

import logging
import re
from pathlib import Path
from typing import Any

import pytest

from automl import api
from automl.cli.outcome import print_outcome
from automl.errors import InvalidSpecError
from automl.session import SearchOutcome
from studies.errors import StudyNotFoundError
from studies.storage import Storage
from studies.trial import TrialState
from tests.trainers.tiny_space import SPACE as TINY
from tests.trainers.training import PLAIN
from trainers.device_load import CpuLoad


def search(storage: str, **fields: Any) -> SearchOutcome:
    """Train one small network on the digits in this process."""
    study = Storage(storage).create_study("tiny", direction="maximize")
    study.enqueue([TINY.validate({**PLAIN, "width": 64})], TINY.distributions())
    tiny: dict[str, Any] = {"space": "tests.trainers.tiny_space", "storage": storage, "study": "tiny", "epochs": 1}
    return api.search(**{**tiny, "trials": 1, "pruner": "none", "executor": "inline", **fields})


def test_tensorboard_and_profile_have_a_place_below_the_artifacts(
    storage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tensorboard")
    outcome = search(storage, tensorboard=True, profile=True)
    assert outcome.exit_code == 0
    folder = tmp_path / "artifacts" / "tiny"
    (board,) = (folder / "tensorboard").iterdir()
    assert board.name == "trial-00000"
    assert any("tfevents" in file.name for file in board.iterdir())
    beside = {file.name for file in (folder / "trial-00000" / "attempt-1").iterdir()}
    assert {"profile-trace.json", "profile-operators.txt", "epoch-0001.pt"} <= beside
    assert outcome.study.specification["tensorboard"] is True, "a study that goes on does so as well"
    (trial,) = outcome.study.trials()
    for fact, place in (("tensorboard", board), ("profile", folder / "trial-00000/attempt-1/profile-operators.txt")):
        assert tmp_path / "artifacts" / str(trial.attributes[fact]) == place
    print_outcome(outcome)
    printed = capsys.readouterr().out
    assert re.search(r"curves: tensorboard --logdir \S*artifacts/tiny/tensorboard\n", printed)
    assert re.search(r"profile of trial 0: \S*artifacts/tiny/trial-00000/attempt-1/profile-operators.txt\n", printed)


def test_search_without_them_writes_nothing_of_it(storage: str, tmp_path: Path) -> None:
    search(storage)
    names = {file.name for file in (tmp_path / "artifacts" / "tiny").rglob("*")}
    assert names == {"study.json", "report.html", "trial-00000", "attempt-1", "epoch-0001.pt"}


def test_tensorboard_in_a_store_is_refused_before_there_is_a_study(storage: str) -> None:
    pytest.importorskip("tensorboard")
    with pytest.raises(InvalidSpecError, match="its files grow in a folder, and the artifacts lie in memory://place"):
        api.search(space="nas_small", storage=storage, study="none", tensorboard=True, artifacts="memory://place",
                   executor="inline", trials=1)  # fmt: skip
    with pytest.raises(StudyNotFoundError):
        Storage(storage).open_study("none")


def test_missing_package_is_refused_with_the_command_that_installs_it(
    storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainers.tensorboard.find_spec", lambda name: None)
    with pytest.raises(InvalidSpecError, match=r"not installed; install it: pip install 'automl\[tensorboard\]'"):
        api.search(space="nas_small", storage=storage, tensorboard=True, executor="inline", trials=1)


@pytest.mark.parametrize("field", ["tensorboard", "profile"])
def test_trainer_without_networks_of_a_space_cannot_be_looked_into(storage: str, field: str) -> None:
    fields: dict[str, Any] = {"space": "tests.helpers.toy", "storage": storage, "metric": "loss", "executor": "inline"}
    fields[field] = True
    with pytest.raises(InvalidSpecError, match=f"{field}: only networks of a search space are looked into"):
        api.search(**fields)


def test_trial_that_cannot_fit_gets_smaller_micro_batches_before_it_starts(
    storage: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(CpuLoad, "available_bytes", lambda self: 2 * 2**20)
    with caplog.at_level(logging.WARNING):
        outcome = search(storage)
    (trial,) = outcome.study.trials()
    assert trial.state is TrialState.COMPLETE
    assert isinstance(trial.attributes["micro_batch"], int)
    assert trial.attributes["micro_batch"] < 64
    assert "the cpu has 2 MiB left of" in caplog.text
