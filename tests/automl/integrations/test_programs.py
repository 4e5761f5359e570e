"""The example as a process of its own: to its end, and killed in the middle."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("ray")
import ray

from automl.integrations.ray_tune import TuneStudy
from studies.errors import StudyNotFoundError
from studies.storage import Storage
from studies.trial import Trial, TrialState

pytestmark = pytest.mark.ray
SCRIPT = Path(__file__).parents[3] / "examples" / "ray_tune_study.py"


def started(storage: str, folder: Path, trials: int) -> subprocess.Popen[str]:
    """Start the example on the cluster of the tests."""
    environment = {
        **os.environ,
        "AUTOML_STORAGE": storage,
        "RAY_ADDRESS": ray.get_runtime_context().gcs_address,
        "XDG_STATE_HOME": str(folder / "state"),
    }
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), "--trials", str(trials), "--results", str(folder / "results")],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def running_with_reports(storage: str, timeout_s: float = 60.0) -> Trial:
    """Wait until a trial of the example has reported and goes on."""
    deadline = time.monotonic() + timeout_s
    with Storage(storage) as database:
        while time.monotonic() < deadline:
            try:
                trials = database.open_study("tune-digits").trials()
            except StudyNotFoundError:
                trials = ()
            for trial in trials:
                if trial.state is TrialState.RUNNING and trial.reports:
                    return trial
            time.sleep(0.02)
    raise AssertionError("no trial has reported")


@pytest.mark.slow
def test_example_ends_with_its_best_trial(tune_cluster: None, storage: str, tmp_path: Path) -> None:
    process = started(storage, tmp_path, trials=6)
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 0, output
    with Storage(storage) as database:
        study = database.open_study("tune-digits")
        best = study.best_trial()
        assert best is not None and f"best: trial {best.number}, accuracy {best.value:.3f}" in output
        assert len(study.trials()) == 6
        assert {trial.state for trial in study.trials()} <= {TrialState.COMPLETE, TrialState.PRUNED}


@pytest.mark.slow
@pytest.mark.chaos
def test_killed_program_leaves_its_trials_to_the_next_one(tune_cluster: None, storage: str, tmp_path: Path) -> None:
    process = started(storage, tmp_path, trials=50)
    trial = running_with_reports(storage)
    process.kill()
    process.communicate()
    with TuneStudy("tune-digits", storage=storage) as study:
        left = [one for one in study.all_trials() if not one.state.is_ended]
        taken = [study.asking.ask(f"next-{one.number}") for one in left]
        after = study.all_trials()
        assert taken == [one.configuration for one in left]
        assert all((after[one.number].attempt, after[one.number].losses) == (2, 1) for one in left)
    ended = [one for one in after if one.state.is_ended]
    assert trial.number in {one.number for one in [*left, *ended]}
