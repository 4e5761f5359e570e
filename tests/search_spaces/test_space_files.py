"""Files of a person's own as search spaces: YAML, and a function that asks, are found by their paths."""

import subprocess
import sys
from pathlib import Path

import pytest

from search_spaces import InvalidSpaceError, UnknownSearchSpaceError, catalog

SUGGEST = '"""What is asked."""\n\n\ndef suggest(trial):\n    trial.suggest_float("x", 0, 1, step=0.3)\n'


def test_yaml_file_is_a_space_that_builds_no_network(tmp_path: Path) -> None:
    file = tmp_path / "own.yml"
    file.write_text("parameters: {x: {low: 0.0, high: 1.0}}")
    module = catalog.load(str(file), has_networks=False)
    assert module.SPACE.name == "own"
    assert vars(module)["__file__"] == str(file)
    with pytest.raises(InvalidSpaceError, match=r"the file must define build_model"):
        catalog.load(str(file))


def test_yaml_file_that_is_wrong_is_told_with_all_lines(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("parameters:\n  x: {low: 2, high: 1}\n  y: {low: 2, high: 1}\n")
    with pytest.raises(InvalidSpaceError, match=r"own\.yaml is no search space:\n.*line 2: x: .*\n.*line 3: y: "):
        catalog.load(str(file), has_networks=False)


def test_yaml_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(UnknownSearchSpaceError, match="there is no such file"):
        catalog.load(str(tmp_path / "none.yaml"))


def test_file_with_only_suggest_is_traced_under_its_name(tmp_path: Path) -> None:
    file = tmp_path / "my-space.py"
    file.write_text(SUGGEST)
    space = catalog.load(str(file), has_networks=False).SPACE
    assert (space.name, space.description, space.names()) == ("my_space", "What is asked.", ("x",))
    assert catalog.load(str(file), has_networks=False).SPACE is space
    assert space.notes == ("x: high=1.0 is not on the grid; the values are 0, 0.3, 0.6, 0.9",)


def test_file_whose_suggest_fails_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("def suggest(trial):\n    raise KeyError('no')\n")
    with pytest.raises(InvalidSpaceError, match=r"own\.py, line 2: KeyError: 'no' \(answers so far: none\)"):
        catalog.load(str(file), has_networks=False)


def test_file_with_neither_a_space_nor_suggest_is_told_so(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("x = 1\n")
    with pytest.raises(InvalidSpaceError, match=r"must define SPACE = SearchSpace\(\.\.\.\)"):
        catalog.load(str(file), has_networks=False)


def test_yaml_space_loads_neither_torch_nor_numpy(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("parameters: {x: [1, 2]}")
    program = (
        f"import sys; from search_spaces import catalog; catalog.load({str(file)!r}, has_networks=False)\n"
        "print(sorted({'torch', 'numpy', 'optuna'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
