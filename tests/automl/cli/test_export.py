"""`automl export` as a person calls it: to a pipe, to a file, and where it cannot be written."""

import csv
import io
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import optuna
import pandas
import pytest

from tests.automl.cli.conftest import Shell
from tests.automl.cli.test_help import flags_of

STUDY = "toy-digits"


def strict(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def printed(shell: Shell, *arguments: str | Path) -> str:
    ended = shell(*arguments)
    assert ended.code == 0, ended
    assert ended.err == ""
    return ended.out


@pytest.fixture
def odd_shell(shell: Shell) -> Shell:
    """A folder with a study of plain Optuna, named odd, in whose trials are numbers that JSON lacks."""
    study = optuna.create_study(study_name="odd", storage=f"sqlite:///{shell.folder}/odd.db")
    for value in (0.5, math.inf):
        running = study.ask({"x": optuna.distributions.FloatDistribution(0.0, 1.0)})
        running.report(math.nan, 0)
        running.set_user_attr("size", {"Größe 😀": [math.nan, -math.inf]})
        study.tell(running, value)
    study.ask().set_user_attr("size", math.inf)
    return shell


def test_flags_are_these(shell: Shell) -> None:
    assert sorted(flags_of(shell, "export")) == ["--format", "--output", "--storage"]


def test_csv_is_printed_by_default(toy_shell: Shell) -> None:
    rows = list(csv.DictReader(io.StringIO(printed(toy_shell, "export", STUDY))))
    trials = strict(printed(toy_shell, "show", STUDY, "--json"))
    assert [int(row["number"]) for row in rows] == [0, 1, 2, 3]
    assert [float(row["value"]) for row in rows] == [trial["value"] for trial in trials]
    assert [float(row["param_x"]) for row in rows] == [trial["configuration"]["x"] for trial in trials]
    assert {row["state"] for row in rows} == {"complete"}
    assert {row["attribute_world_size"] for row in rows} == {"1"}


def test_json_has_every_metric_of_every_epoch(toy_shell: Shell) -> None:
    document = strict(printed(toy_shell, "export", STUDY, "--format", "json"))
    assert (document["study"], document["direction"], document["metric"]) == (STUDY, "minimize", "loss")
    assert document["specification"]["epochs"] == 3
    for trial in document["trials"]:
        assert list(trial["reports"]) == ["1", "2", "3"]
        assert all(set(report) == {"loss", "accuracy"} for report in trial["reports"].values())
        assert trial["value"] == min(report["loss"] for report in trial["reports"].values())


def test_format_follows_the_suffix_unless_it_is_given(toy_shell: Shell, tmp_path: Path) -> None:
    names = ("trials.csv", "trials.JSON", "new/trials.parquet")
    files = [Path(printed(toy_shell, "export", STUDY, "--output", tmp_path / name).rstrip("\n")) for name in names]
    assert files == [tmp_path / name for name in names]
    assert len(pandas.read_csv(files[0])) == len(pandas.read_parquet(files[2])) == 4
    assert len(strict(files[1].read_text())["trials"]) == 4
    other = tmp_path / "trials.txt"
    printed(toy_shell, "export", STUDY, "-o", other, "--format", "csv")
    assert other.read_bytes() == files[0].read_bytes()
    assert len(list(tmp_path.iterdir())) == 4


def test_output_that_cannot_be_written_is_refused_in_one_line(toy_shell: Shell, tmp_path: Path) -> None:
    blocked = tmp_path / "file" / "trials.csv"
    blocked.parent.write_text("a file in the place of the folder")
    for target in (tmp_path, Path("/proc/automl/trials.csv"), Path("/dev/null"), blocked):
        ended = toy_shell("export", STUDY, "--output", target, "--format", "csv")
        assert ended.code == 2, ended
        assert ended.err.startswith(f"automl: cannot write {target}: ")
        assert ended.err.count("\n") == 1
        assert ended.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_numbers_that_json_lacks_are_the_same_texts_everywhere(odd_shell: Shell) -> None:
    storage = ("--storage", f"sqlite:///{odd_shell.folder}/odd.db")
    attributes = {"size": {"Größe 😀": ["nan", "-inf"]}}
    exported = strict(printed(odd_shell, "export", "odd", "--format", "json", *storage))["trials"]
    shown = strict(printed(odd_shell, "show", "odd", "--json", *storage))
    (best,) = strict(printed(odd_shell, "best", "odd", "--json", *storage))
    status = strict(printed(odd_shell, "status", "odd", "--json", *storage))
    for trial in (exported[0], shown[0], best, status["best"]):
        assert trial["attributes"] == attributes
    assert [trial["value"] for trial in exported] == [trial["value"] for trial in shown] == [0.5, "inf", None]
    assert (shown[0]["reports"], exported[0]["reports"]) == ({"0": "nan"}, {"0": {"value": "nan"}})
    assert status["unfinished"][0]["attributes"] == {"size": "inf"}
    assert strict(printed(odd_shell, "status", "--json", *storage))[0]["best_value"] == 0.5


def test_printed_text_is_utf_8_whatever_the_terminal_speaks(odd_shell: Shell) -> None:
    command = [sys.executable, "-m", "automl", "export", "odd", "--storage", f"sqlite:///{odd_shell.folder}/odd.db"]
    plain = {**odd_shell.environment, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for name in ("name-ä", "b"):
        optuna.load_study(study_name="odd", storage=command[-1]).ask().set_user_attr(name, "Zürich")
    ended = subprocess.run(command, cwd=odd_shell.folder, env=plain, capture_output=True, check=True)
    assert ended.stderr == b""
    *_, last = csv.DictReader(io.StringIO(ended.stdout.decode()))
    assert last["attribute_b"] == "Zürich"
    assert "attribute_name-ä" in last


@pytest.mark.parametrize("reader", ["head -1", "true"])
def test_reader_that_leaves_early_is_no_error(toy_shell: Shell, reader: str) -> None:
    script = f"{sys.executable} -m automl export {STUDY} | {reader}; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(
        ["bash", "-c", script], cwd=toy_shell.folder, env=toy_shell.environment, capture_output=True, text=True
    )
    assert ended.returncode in (0, 1), ended
    assert ended.stderr == ""
