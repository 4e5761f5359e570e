"""Where the files of a study lie: names of folders, roots that are URLs, and a disk that is full."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from automl import api
from automl.artifacts import Artifacts, absolute_root
from automl.errors import InvalidSpecError
from automl.events import EpochReported, Event, TrialStarted
from automl.observer import Observer
from automl.spec import SearchSpec
from search_spaces.parameters import Float
from studies.errors import StudyNotFoundError
from studies.storage import Storage
from studies.trial import TrialState
from tests.automl.conftest import Recorder, Search
from tests.helpers.full_disk import SmallDisk, small_disk
from tests.helpers.long_names import SPACE as LONG_NAMES
from tests.helpers.stores import names_in, store_url

__all__ = ["small_disk", "store_url"]


@pytest.mark.parametrize("name", ["a", "a" * 60, "a" * 61, "ü" * 300, "../..", "a/b:c?", "x" * 512])
def test_folder_name_has_at_most_60_letters_and_stays_below_the_root(name: str, tmp_path: Path) -> None:
    artifacts = Artifacts(root=str(tmp_path), study=name)
    assert 0 < len(artifacts.folder) <= 60
    assert (tmp_path / artifacts.folder).resolve().parent == tmp_path
    assert all(len(part) <= 60 for part in artifacts.checkpoint_dir(99_999, 99).split("/"))
    assert artifacts.report == f"{tmp_path}/{artifacts.folder}/report.html"


def test_folder_names_differ_for_names_that_differ_at_their_end_only() -> None:
    names = ["a" * 59, "a" * 60, "a" * 61, "a" * 511 + "b", "a" * 511 + "c", "A" * 60 + "a"]
    assert len({Artifacts(root="/r", study=name).folder for name in names}) == len(names)


@pytest.mark.parametrize(
    "given, root",
    [
        ("/runs/", "/runs"),
        ("file:///runs/a", "/runs/a"),
        ("local:///runs", "/runs"),
        ("memory://runs/", "memory://runs"),
        ("memory://", "memory://"),
    ],
)
def test_root_is_an_absolute_folder_or_a_url(given: str, root: str) -> None:
    assert absolute_root(given) == root


def test_root_below_the_home_and_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert absolute_root("runs") == str(tmp_path / "runs")
    assert absolute_root("~/runs") == str(tmp_path / "home" / "runs")


def problem_with(artifacts: str, **more: object) -> str:
    with pytest.raises(InvalidSpecError) as caught:
        SearchSpec.from_mapping({"space": "nas_small", "artifacts": artifacts, **more}, "the command line")
    text = str(caught.value)
    assert text.startswith("1 mistake in the command line:\n  - ")
    return text


@pytest.mark.parametrize(
    "url, hint",
    [
        ("sfpt://host/a", "sfpt:// is no store that is known; did you mean 'sftp'? usual: s3://, gs://"),
        ("dropbox://folder", "dropbox:// needs a package that is not installed: pip install dropboxdrivefs"),
        ("smb://host/share", "pip install smbprotocol"),
        ("simplecache::memory://a", "is no URL of the form PROTOCOL://PLACE"),
        ("://bucket", "is no store that is known"),
    ],
)
def test_url_of_no_store_is_refused_with_what_to_do(url: str, hint: str) -> None:
    assert hint in problem_with(url)


def test_url_without_a_place_is_refused() -> None:
    assert "ftp:// names no place; give ftp://BUCKET_OR_HOST/FOLDER" in problem_with("ftp://")


def test_url_with_a_password_is_refused_and_not_printed() -> None:
    text = problem_with("ftp://me:hunter2@host/runs")
    assert "ftp://***@host/runs holds a password" in text
    assert "hunter2" not in text


def test_memory_is_refused_where_other_processes_train() -> None:
    assert "are seen by one process only; use --executor inline" in problem_with("memory://runs", executor="ray")


def test_variable_with_a_wrong_url_is_refused(toy_search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOML_ARTIFACTS", "s4://bucket")
    with pytest.raises(InvalidSpecError, match="s4:// is no store"):
        toy_search(trials=1)


def test_store_that_refuses_is_found_before_the_study_is_made(toy_search: Search, storage: str) -> None:
    with pytest.raises(InvalidSpecError, match=r"cannot write refusing://bucket/toy/.*Access Denied; look at the name"):
        toy_search(trials=1, artifacts="refusing://bucket")
    with pytest.raises(StudyNotFoundError):
        Storage(storage).open_study("toy")


def test_search_keeps_its_files_in_a_store_and_goes_on_from_there(
    toy_search: Search, store_url: str, tmp_path: Path
) -> None:
    first = toy_search(trials=3, artifacts=f"{store_url}/", pruner="tests.helpers.pruners:PauseAtTwo")
    assert first.test == {"loss": 4.0}, "the toy's test metric is the epoch of the checkpoint that was evaluated"
    assert first.report == f"{store_url}/toy/report.html"
    assert [trial.attempt for trial in first.study.trials()] == [2, 2, 2]
    second = api.resume("toy", storage=first.study.storage_url, trials=5)
    assert second.report == first.report
    assert second.best is not None
    kept = f"toy/trial-{second.best.number:05d}/attempt-{second.best.attempt}/epoch-0004.json"
    assert names_in(store_url) == ["toy/report.html", "toy/study.json", kept]
    assert not (tmp_path / "artifacts").exists()
    assert store_url not in json.dumps(second.study.specification)


class FillsTheDisk(Observer):
    """Fills a disk while the second trial trains its second epoch."""

    def __init__(self, disk: SmallDisk) -> None:
        self._disk = disk

    def notify(self, event: Event) -> None:
        if isinstance(event, EpochReported) and (event.number, event.epoch) == (1, 1):
            self._disk.fill()


def test_full_disk_ends_the_search_with_that_word_and_its_trial_goes_on_later(
    toy_search: Search, small_disk: SmallDisk, caplog: pytest.LogCaptureFixture
) -> None:
    fields: dict[str, Any] = {
        "space": "tests.helpers.slow_toy",
        "trials": 2,
        "epochs": 2,
        "artifacts": str(small_disk.folder / "artifacts"),
    }
    outcome = toy_search(**fields, observer=FillsTheDisk(small_disk))
    assert outcome.exit_code == 1
    assert "the disk" in outcome.reason and "is full (trial 1: [Errno 28] No space left on device" in outcome.reason
    states = [(trial.state, trial.last_epoch) for trial in outcome.study.trials()]
    assert states == [(TrialState.COMPLETE, 2), (TrialState.PAUSED, 1)]
    assert outcome.report is None
    assert "report.html is not written: [Errno 28] No space left" in caplog.text
    small_disk.make_room()
    recorder = Recorder()
    assert toy_search(**fields, observer=recorder).exit_code == 0
    assert recorder.events[0] == TrialStarted(number=1, attempt=2, epoch=1, epochs=2)
    assert [trial.state for trial in outcome.study.trials()] == [TrialState.COMPLETE] * 2


def test_many_long_parameters_and_a_long_root_work(toy_search: Search, tmp_path: Path) -> None:
    root = tmp_path / ("r" * 120)
    assert len(LONG_NAMES.parameters) == 40
    assert {len(name) for name in LONG_NAMES.parameters} == {30}
    assert all(isinstance(parameter, Float) for parameter in LONG_NAMES.parameters.values())
    outcome = toy_search(
        space="tests.helpers.long_names", study="s" * 200, trials=2, artifacts=str(root), sampler="tpe"
    )
    assert outcome.exit_code == 0
    assert outcome.report is not None and Path(outcome.report).is_file()
    names = [name for _, folders, files in os.walk(root) for name in folders + files]
    assert names and max(map(len, names)) <= 60
