"""Looking at studies: status, show, best, report and spaces, for people and as strict JSON."""

import json
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from studies.storage import Storage
from tests.automl.cli.conftest import Shell
from tests.helpers.moody_toy import SPACE as MOODY

STUDY = "toy-digits"


def document(shell: Shell, *arguments: str | int) -> Any:
    ended = shell(*arguments, "--json")
    assert ended.code == 0, ended

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(ended.out, parse_constant=refuse)


def lines(shell: Shell, *arguments: str | int) -> list[str]:
    ended = shell(*arguments)
    assert ended.code == 0, ended
    return ended.out.splitlines()


def test_status_has_a_line_per_study(toy_shell: Shell) -> None:
    head, row = lines(toy_shell, "status")
    assert head.split() == ["study", "best", "trials", "last", "activity"]
    assert re.fullmatch(r"toy-digits +0\.\d+ +4 complete +\d{4}-\d\d-\d\d \d\d:\d\d UTC", row)


def test_status_json_counts_every_state(toy_shell: Shell) -> None:
    (study,) = document(toy_shell, "status")
    assert study["study"] == STUDY
    assert study["direction"] == "minimize"
    assert study["trials"]["complete"] == 4
    assert sum(study["trials"].values()) == 4
    assert datetime.fromisoformat(study["last_activity"]).tzinfo is not None


def test_status_of_one_study_says_how_far_it_is(toy_shell: Shell) -> None:
    first, limits, best = lines(toy_shell, "status", STUDY)
    assert first == "study 'toy-digits': 4 of 4 trials ended; 4 complete"
    assert re.fullmatch(r"limits: 4 trials; searched for \d+ s in all", limits)
    assert re.fullmatch(r"best: trial \d, 0\.\d+", best)
    found = document(toy_shell, "status", STUDY)
    assert (found["budget"], found["unfinished"]) == (4, [])
    assert found["limits"] == {"trials": 4, "timeout_s": None, "target_value": None}
    assert 0.0 < found["searched_s"] < 60.0
    assert (found["imported"], found["searching"], found["stop_requested_at"]) == (0, [], None)
    assert found["best"]["state"] == "complete"


def test_status_of_an_empty_folder_creates_nothing(shell: Shell) -> None:
    assert document(shell, "status") == []
    assert shell("status").code == 0
    assert not any(shell.folder.iterdir())


def test_show_has_a_row_per_trial(toy_shell: Shell) -> None:
    head, *rows = lines(toy_shell, "show", STUDY)
    assert head.split() == ["trial", "state", "epoch", "value", "cause"]
    assert [row.split()[:3] for row in rows] == [[str(number), "complete", "3"] for number in range(4)]
    trials = document(toy_shell, "show", STUDY)
    assert [trial["trial"] for trial in trials] == [0, 1, 2, 3]
    assert all(trial["value"] == min(trial["reports"].values()) for trial in trials)


def test_show_one_trial_has_its_configuration_curve_and_facts(toy_shell: Shell) -> None:
    trial = document(toy_shell, "show", STUDY, 2)
    assert trial["trial"] == 2
    assert list(trial["reports"]) == ["1", "2", "3"]
    text = "\n".join(lines(toy_shell, "show", STUDY, 2))
    assert text.startswith(f"trial 2: complete, value {trial['value']:.4g}\n")
    assert f"x  {trial['configuration']['x']:.4g}" in text
    assert "curve  1: " in text
    assert "world_size  1" in text


def test_best_prints_the_winners_in_order(toy_shell: Shell) -> None:
    values = [trial["value"] for trial in document(toy_shell, "show", STUDY)]
    (winner,) = document(toy_shell, "best", STUDY)
    assert winner["value"] == min(values)
    assert [trial["value"] for trial in document(toy_shell, "best", STUDY, "--count", 3)] == sorted(values)[:3]
    assert len(document(toy_shell, "best", STUDY, "-k", 99)) == 4
    assert lines(toy_shell, "best", STUDY)[0] == f"trial {winner['trial']}: complete, value {winner['value']:.4g}"


def test_best_of_a_study_without_a_complete_trial_ends_with_3(shell: Shell) -> None:
    Storage(f"sqlite:///{shell.folder}/studies.db").create_study("empty", direction="maximize")
    ended = shell("best", "empty", "--storage", f"sqlite:///{shell.folder}/studies.db")
    assert ended.code == 3
    assert ended.err == "automl: study 'empty' has no completed trial (no trials yet)\n"


def test_study_is_found_in_another_folder_by_its_name_alone(toy_shell: Shell, tmp_path: Path) -> None:
    elsewhere = Shell(warm=toy_shell.warm, folder=tmp_path, environment=toy_shell.environment)
    assert len(document(elsewhere, "show", STUDY)) == 4
    assert not any(tmp_path.iterdir())


def test_storage_may_come_from_the_environment(toy_shell: Shell, tmp_path: Path) -> None:
    storage = f"sqlite:///{toy_shell.folder}/automl-runs/studies.db"
    stranger = {**toy_shell.environment, "XDG_STATE_HOME": str(tmp_path / "state"), "AUTOML_STORAGE": storage}
    assert len(document(Shell(warm=toy_shell.warm, folder=tmp_path, environment=stranger), "show", STUDY)) == 4
    assert not any(tmp_path.iterdir())


def test_report_writes_a_page_and_prints_its_path(toy_shell: Shell, tmp_path: Path) -> None:
    (usual,) = lines(toy_shell, "report", STUDY)
    assert Path(usual) == toy_shell.folder / "automl-runs" / "artifacts" / STUDY / "report.html"
    file = tmp_path / "new" / "page.html"
    assert lines(toy_shell, "report", STUDY, "--output", str(file)) == [str(file)]
    assert file.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
    assert [path.name for path in file.parent.iterdir()] == ["page.html"]


def test_report_that_cannot_be_written_is_refused(toy_shell: Shell, tmp_path: Path) -> None:
    for file in (tmp_path, Path("/proc/automl/page.html")):
        ended = toy_shell("report", STUDY, "--output", file)
        assert ended.code == 2, ended
        assert str(file) in ended.err
        assert "unexpected" not in ended.err
    assert not any(tmp_path.iterdir())


def test_failed_trial_is_shown_with_its_cause_and_traceback_and_numbers_stay_json(shell: Shell) -> None:
    study = Storage(f"sqlite:///{shell.folder}/automl-runs/studies.db").create_study("moody", direction="minimize")
    for mood in ("fine", "raise_0", "nan"):
        configuration = MOODY.validate({"x": 0.5, "mood": mood, "epoch_s": 0.0})
        study.enqueue([configuration], MOODY.distributions())
    ended = shell.search_toy("--study", "moody", "--trials", 3, space="tests.helpers.moody_toy")
    assert ended.code == 0, ended
    table = lines(shell, "show", "moody")
    assert [row.split()[1] for row in table[1:]] == ["complete", "failed", "failed"]
    assert [row.split()[-1] for row in table[1:]] == ["-", "user_error", "non_finite"]
    text = "\n".join(lines(shell, "show", "moody", 1))
    assert text.startswith("trial 1: failed, cause user_error\n")
    assert "ZeroDivisionError: the toy of rank 0 divides by zero" in text
    assert "_misbehave" in text
    assert document(shell, "show", "moody", 2)["cause"] == "non_finite"
    assert document(shell, "status", "moody")["trials"]["failed"] == 2


def test_spaces_lists_every_space_and_its_parameters(shell: Shell) -> None:
    spaces = document(shell, "spaces")
    assert "nas_small" in [space["name"] for space in spaces]
    table = lines(shell, "spaces")
    assert [row.split()[0] for row in table[1:]] == [space["name"] for space in spaces]
    described = document(shell, "spaces", "nas_small")
    assert described["parameters"]["learning_rate"]["log"] is True
    text = lines(shell, "spaces", "nas_small")
    assert text[0].startswith("nas_small: ")
    assert [row.split()[0] for row in text[2 : text.index("")]] == list(described["parameters"])
    assert described["example"]["parameters"] == sum(part["parameters"] for part in described["example"]["parts"])
    assert f"{described['example']['parameters']:,}" in "\n".join(text)
    assert "  input --conv3x3--> 1" in text
    assert "sgd | adam | adamw" in "\n".join(text)
    assert lines(shell, "spaces", "tests.helpers.toy")[2].split()[0] == "x"


@pytest.mark.parametrize("reader", ["head -1", "true"])
def test_reader_that_leaves_early_is_no_error(toy_shell: Shell, reader: str) -> None:
    """`true` closes the pipe before anything is written, `head -1` after the first line."""
    script = f"{sys.executable} -m automl show {STUDY} | {reader}; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(
        ["bash", "-c", script], cwd=toy_shell.folder, env=toy_shell.environment, capture_output=True, text=True
    )
    assert ended.returncode in (0, 1), ended
    assert ended.stderr == ""
    assert ended.stdout.count("\n") == (reader == "head -1")
