"""Real networks on the digits from the command line: ranks and number formats that were asked for are the ones used."""

from pathlib import Path

import pytest

from search_spaces.catalog.nas_small import SPACE
from studies.storage import Storage
from studies.study import Study
from studies.trial import TrialState
from tests.helpers.commands import Command, Ended, environment_of
from trainers.config import Precision
from trainers.distributed import default_device
from trainers.precision import resolve_precision

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

NAME = "nets"


def study_of(folder: Path) -> Study:
    """The study, with two small networks enqueued first: a processor without these formats computes them slowly."""
    study = Storage(f"sqlite:///{folder}/automl-runs/studies.db").create_study(NAME, direction="maximize")
    assert SPACE.defaults is not None
    edges = {name: "skip" for name in SPACE.parameters if name.startswith("edge")}
    for operation in ("conv1x1", "conv3x3"):
        small = {**SPACE.defaults, **edges, "edge_0_3": operation, "channels": 8}
        study.enqueue([SPACE.validate(small)], SPACE.distributions())
    return study


def search(folder: Path, *arguments: str | int) -> Ended:
    command = ("search", "--space", "nas_small", "--study", NAME, *arguments)
    with Command(*command, folder=folder, environment=environment_of(folder)) as running:
        ended = running.ended(timeout_s=200.0)
        assert not running.family()
    assert ended.code == 0, ended
    return ended


@pytest.mark.ray
def test_search_on_two_ranks_trains_every_trial_on_both(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    arguments = ("--procs-per-trial", 2, "--concurrency", 1, "--trials", 2, "--epochs", 2, "--pruner", "none")
    ended = search(tmp_path, *arguments)
    trials = study.trials()
    assert [(trial.state, list(trial.reports)) for trial in trials] == [(TrialState.COMPLETE, [1, 2])] * 2
    assert [trial.attributes["world_size"] for trial in trials] == [2, 2]
    assert max(trial.value or 0.0 for trial in trials) > 0.3, "far above one in ten"
    assert "on the test split, which the search never saw: accuracy 0." in ended.out


@pytest.mark.parametrize("precision", ["auto", "bf16", "fp16"])
def test_search_stores_the_precision_really_used(tmp_path: Path, precision: Precision) -> None:
    study = study_of(tmp_path)
    search(tmp_path, "--precision", precision, "--executor", "inline", "--trials", 1, "--epochs", 1)
    (trial,) = study.trials([TrialState.COMPLETE])
    assert trial.attributes["precision"] == resolve_precision(precision, default_device(0))
    assert trial.attributes["world_size"] == 1
