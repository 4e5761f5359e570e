"""The examples of own search spaces are searched as they are, on their real data."""

import sys
from pathlib import Path
from typing import Any

import pytest

import automl
from automl.session import SearchOutcome
from search_spaces import SearchSpace, catalog

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def searched(folder: Path, space: str, **fields: Any) -> SearchOutcome:
    settings = {"storage": f"sqlite:///{folder}/studies.db", "executor": "inline", "trials": 2, "sampler": "random"}
    return automl.search(**{**settings, "space": str(EXAMPLES / space), **fields})


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize("space", ["own_space.py", "define_by_run_space.py", "training_only.py"])
def test_own_space_with_its_network_learns_the_digits(tmp_path: Path, space: str) -> None:
    outcome = searched(tmp_path, space, epochs=2)
    assert outcome.exit_code == 0
    assert outcome.best is not None and outcome.best.value is not None
    assert outcome.best.value > 0.2  # guessing gives 0.1


def test_own_space_is_a_file_of_25_lines() -> None:
    assert len((EXAMPLES / "own_space.py").read_text().splitlines()) <= 25


def test_yaml_space_tunes_a_script(tmp_path: Path) -> None:
    script = f"{sys.executable} {EXAMPLES / 'sklearn_script.py'} --epochs {{epochs}}"
    outcome = searched(tmp_path, "yaml_space.yaml", script=script, metric="accuracy", epochs=1, trials=1)
    assert outcome.best is not None and outcome.best.value is not None
    assert outcome.best.value > 0.5
    assert outcome.best.configuration == {"learning_rate": 0.1, "max_leaf_nodes": 8, "criterion": "squared_error"}


def test_example_in_yaml_is_the_example_in_python() -> None:
    spaces: list[SearchSpace] = [
        catalog.load(str(EXAMPLES / name), has_networks=False).SPACE for name in ("yaml_space.yaml", "sklearn_space.py")
    ]
    wanted = {**spaces[1].parameters, "learning_rate": spaces[0].parameters["learning_rate"]}
    assert dict(spaces[0].parameters) == wanted
