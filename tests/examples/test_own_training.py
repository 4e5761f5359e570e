"""The examples of own trainings do what they say, on their real data."""

import sys
from pathlib import Path
from typing import Any

import pytest

import automl
from automl.session import SearchOutcome

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def searched(folder: Path, **fields: Any) -> SearchOutcome:
    settings = {"storage": f"sqlite:///{folder}/studies.db", "executor": "inline", "trials": 1, "sampler": "random"}
    return automl.search(**{**settings, **fields})


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_own_fit_learns_the_digits(tmp_path: Path) -> None:
    outcome = searched(tmp_path, space=str(EXAMPLES / "own_fit.py"), epochs=6)
    assert outcome.best is not None and outcome.best.value is not None
    assert outcome.best.value > 0.85
    assert outcome.test is None and outcome.exit_code == 0


def test_own_module_learns_to_remove_noise(tmp_path: Path) -> None:
    outcome = searched(tmp_path, space=str(EXAMPLES / "own_module.py"), epochs=4)
    assert outcome.best is not None and outcome.best.value is not None
    assert outcome.best.value > 12.0
    assert outcome.test is not None and outcome.test["psnr"] > 11.5


def test_script_of_scikit_learn_is_tuned_as_it_is(tmp_path: Path) -> None:
    script = f"{sys.executable} {EXAMPLES / 'sklearn_script.py'} --epochs {{epochs}}"
    space = str(EXAMPLES / "sklearn_space.py")
    outcome = searched(tmp_path, space=space, script=script, metric="accuracy", epochs=3, trials=2)
    assert outcome.best is not None and outcome.best.value is not None
    assert outcome.best.value > 0.9
