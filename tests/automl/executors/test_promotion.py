"""Trials that rest and are promoted, on the real executor with one slot: what goes on, and what is left behind."""

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ray.util.placement_group import placement_group_table

from automl import api
from studies.errors import StudyNotFoundError
from studies.storage import Storage
from studies.trial import Trial, TrialState
from tests.helpers.commands import Command, environment_of, until

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(240)]

TRIALS, EPOCHS, SEED = 12, 8, 3
NAME = "promoted"


def searched(folder: Path, **fields: Any) -> Sequence[Trial]:
    known: dict[str, Any] = {
        "storage": f"sqlite:///{folder / 'studies.db'}",
        "trials": TRIALS,
        "epochs": EPOCHS,
        "seed": SEED,
        "sampler": "random",
        "pruner": "tests.helpers.pruners:Halving",
        "concurrency": 1,
    }
    outcome = api.search(**{**known, **fields})
    assert outcome.exit_code == 0
    return outcome.study.trials()


def survivors(trials: Sequence[Trial]) -> list[tuple[TrialState, int]]:
    return [(trial.state, trial.last_epoch) for trial in trials]


def reserved() -> set[str]:
    return {name for name, entry in placement_group_table().items() if entry["state"] != "REMOVED"}


@pytest.mark.usefixtures("ray_cluster")
def test_promoted_networks_go_on_as_if_they_had_never_rested(tmp_path: Path) -> None:
    before = reserved()
    trials = searched(tmp_path, space="nas_small", trials=4, epochs=4, cpus_per_trial=1)
    assert reserved() == before
    assert all(trial.state.is_ended for trial in trials)
    assert any(trial.attempt > 1 and trial.state is TrialState.COMPLETE for trial in trials)
    unbroken = searched(
        tmp_path, space="nas_small", trials=4, epochs=4, pruner="none", study="unbroken", cpus_per_trial=1
    )
    for trial, whole in zip(trials, unbroken, strict=True):
        assert trial.configuration == whole.configuration
        assert trial.reports == {epoch: whole.reports[epoch] for epoch in trial.reports}


@pytest.mark.chaos
def test_search_that_was_killed_has_the_survivors_of_an_unbroken_one(tmp_path: Path) -> None:
    home, storage = tmp_path / "home", f"sqlite:///{tmp_path / 'home' / 'studies.db'}"
    home.mkdir()
    arguments = (
        "search", "--space", "tests.helpers.steady_toy", "--study", NAME, "--storage", storage, "--metric", "loss",
        "--epochs", EPOCHS, "--trials", TRIALS, "--concurrency", 1, "--sampler", "random", "--seed", SEED,
        "--pruner", "tests.helpers.pruners:Halving",
    )  # fmt: skip
    with Command(*arguments, folder=home, environment=environment_of(home)) as command:
        until(lambda: command.process.poll() is not None or has_promoted(storage), 90.0, "the first promotion")
        assert command.process.poll() is None, command.ended()
        command.send(signal.SIGKILL)
        until(lambda: not command.family(), 15.0, "the end of the dead driver's processes")
    with Command("resume", NAME, "--storage", storage, folder=home, environment=environment_of(home)) as command:
        assert command.ended().code == 0
    with Storage(storage) as opened:
        trials = opened.open_study(NAME).trials()
    unbroken = searched(tmp_path, space="tests.helpers.steady_toy", metric="loss", executor="inline")
    assert survivors(trials) == survivors(unbroken)
    assert [trial.reports for trial in trials] == [trial.reports for trial in unbroken]


def has_promoted(storage: str) -> bool:
    try:
        with Storage(storage) as opened:
            return any(trial.attempt > 1 for trial in opened.open_study(NAME).trials())
    except StudyNotFoundError:
        return False  # not begun yet
