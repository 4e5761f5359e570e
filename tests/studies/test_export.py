"""Exports lose nothing, whatever a study holds, and every reader of their format can read them."""

import csv
import io
import json
import math
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import optuna
import pandas
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from pyarrow import parquet

from studies.export import ExportError, export_bytes, format_of, write_export
from studies.storage import Storage
from studies.study import Study
from studies.trial import JsonScalar, TrialState
from tests.studies.test_trial_table import FACTS

HARD_TEXTS = (
    "=1+1",
    "+49",
    "-x",
    "@a",
    'a "quoted", text',
    "two\nlines\r\n",
    " edges ",
    "Zürich 😀 e\u0301",
    "\x00",
    "NA",
)
LONE_HALF = "\ud83d"
SPACE = {
    "rate": FloatDistribution(0.0, 1.0),
    "width": IntDistribution(1, 2**60),
    "state": CategoricalDistribution(["on", "off"]),
    "bias": CategoricalDistribution([True, False]),
}
CONFIGURATIONS: tuple[Mapping[str, JsonScalar], ...] = (
    {"rate": 0.1, "width": 2**53 + 1, "state": "on", "bias": True},
    {"rate": 0.25, "width": 3},
    {"rate": 1e-300},
)


def strict(text: bytes) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """A study in its database: two complete trials, one failed, one refused, one queued."""
    study = Storage(f"sqlite:///{tmp_path / 'studies.db'}").create_study(
        "stored", direction="minimize", specification={"metric": "loss", "trials": 5}
    )
    for number, configuration in enumerate(CONFIGURATIONS):
        lease = study.create_trial(number, configuration, SPACE, owner="me/b/1/1/1")
        study.report(lease, 1, 0.5, {"loss": 0.5, "accuracy": math.nan, "gain": -math.inf})
        study.report(lease, 2, 0.25)
        if number < 2:
            study.tell(lease, TrialState.COMPLETE, value=0.25, attributes={"state": "mine", "sizes": [1, 2]})
        else:
            study.tell(lease, TrialState.FAILED, cause="oom", attributes={"error": "Zu groß: =1+1"})
    study.add_infeasible(3, {"rate": 0.5}, SPACE, "no path")
    study.enqueue([{"rate": 0.75}], SPACE)
    return study


@pytest.fixture
def foreign(tmp_path: Path) -> Study:
    """A study that plain Optuna made, with everything that JSON and tables do not like."""
    url = f"sqlite:///{tmp_path / 'foreign.db'}"
    made = optuna.create_study(study_name="foreign", storage=url)
    for value in (0.5, math.inf, 0.25):
        running = made.ask({"x": FloatDistribution(0.0, 1.0), "kernel": CategoricalDistribution([None, "3x3"])})
        running.report(math.nan, 0)
        running.report(math.inf, 1)
        running.set_user_attr("odd", [math.nan, {"deep": -math.inf}])
        running.set_user_attr("number", "mine")
        made.tell(running, value)
    made.ask()
    return Storage(url).open_study("foreign")


def test_csv_has_a_row_per_trial_with_every_fact(study: Study) -> None:
    rows = rows_of(export_bytes(study, "csv"))
    parameters = ["param_rate", "param_width", "param_state", "param_bias"]
    attributes = ["attribute_state", "attribute_sizes", "attribute_error"]
    assert list(rows[0]) == [*FACTS, *parameters, *attributes]
    assert [row["state"] for row in rows] == ["complete", "complete", "failed", "infeasible", "queued"]
    assert [row["cause"] for row in rows] == ["", "", "oom", "infeasible", ""]
    assert [row["last_epoch"] for row in rows] == ["2", "2", "2", "0", "0"]
    assert [row["attempt"] for row in rows] == ["1", "1", "1", "0", "0"]
    assert [row["param_width"] for row in rows] == [str(2**53 + 1), "3", "", "", ""]
    assert [float(row["param_rate"]) for row in rows] == [0.1, 0.25, 1e-300, 0.5, 0.75]
    assert (rows[0]["value"], rows[2]["value"]) == ("0.25", "")
    assert (rows[0]["param_state"], rows[0]["attribute_state"], rows[0]["param_bias"]) == ("on", "mine", "true")
    assert json.loads(rows[0]["attribute_sizes"]) == [1, 2]
    assert rows[2]["attribute_error"] == "Zu groß: =1+1"


def test_times_are_iso_8601_in_utc_and_the_duration_is_their_difference(study: Study) -> None:
    first, *_, queued = rows_of(export_bytes(study, "csv"))
    started, ended = (datetime.fromisoformat(first[name]) for name in ("started_at", "ended_at"))
    assert started.utcoffset() == ended.utcoffset() == datetime.now(UTC).utcoffset()
    assert float(first["duration_s"]) == (ended - started).total_seconds() >= 0
    assert queued["started_at"] == queued["ended_at"] == queued["duration_s"] == ""


def test_json_is_strict_and_has_the_reports(study: Study) -> None:
    document = strict(export_bytes(study, "json"))
    assert (document["study"], document["direction"], document["metric"]) == ("stored", "minimize", "loss")
    assert document["specification"] == {"metric": "loss", "trials": 5}
    first, _, failed, refused, _ = document["trials"]
    assert list(first) == [*FACTS, "configuration", "reports", "attributes"]
    assert first["configuration"] == CONFIGURATIONS[0]
    assert first["reports"] == {"1": {"loss": 0.5, "accuracy": "nan", "gain": "-inf"}, "2": {"loss": 0.25}}
    assert (failed["cause"], failed["value"], refused["reports"]) == ("oom", None, {})


def test_study_of_plain_optuna_is_exported_whole(foreign: Study) -> None:
    first, infinite, last, running = strict(export_bytes(foreign, "json"))["trials"]
    assert first["reports"] == {"0": {"value": "nan"}, "1": {"value": "inf"}}
    assert first["attributes"] == {"odd": ["nan", {"deep": "-inf"}], "number": "mine"}
    assert (infinite["state"], infinite["value"], last["value"], running["value"]) == ("complete", "inf", 0.25, None)
    rows = rows_of(export_bytes(foreign, "csv"))
    assert [row["value"] for row in rows] == ["0.5", "inf", "0.25", ""]
    assert json.loads(rows[0]["attribute_odd"]) == ["nan", {"deep": "-inf"}]
    assert [row["attribute_number"] for row in rows] == ["mine", "mine", "mine", ""]


def test_parquet_has_the_types_that_the_values_have(study: Study, tmp_path: Path) -> None:
    file = write_export(study, tmp_path / "trials.parquet")
    kinds = {field.name: str(field.type) for field in parquet.read_schema(file)}
    assert {kinds[name] for name in ("number", "attempt", "last_epoch", "param_width")} == {"int64"}
    assert {kinds[name] for name in ("value", "duration_s", "param_rate")} == {"double"}
    assert {kinds[name] for name in ("started_at", "ended_at")} == {"timestamp[us, tz=UTC]"}
    assert kinds["param_bias"] == "bool"
    frame = pandas.read_parquet(file)
    assert (str(frame["param_width"].dtype), str(frame["param_bias"].dtype)) == ("Int64", "boolean")
    assert frame["param_width"][0] == 2**53 + 1
    assert frame["param_width"].isna().tolist() == [False, False, True, True, True]
    assert frame["param_state"].dropna().tolist() == ["on"]
    assert frame["started_at"][0] == study.trials()[0].started_at


@pytest.mark.parametrize("text", HARD_TEXTS)
def test_text_comes_out_of_csv_and_parquet_as_it_went_in(foreign: Study, tmp_path: Path, text: str) -> None:
    foreign.as_optuna().ask().set_user_attr("text", text)
    assert rows_of(export_bytes(foreign, "csv"))[-1]["attribute_text"] == text
    assert strict(export_bytes(foreign, "json"))["trials"][-1]["attributes"]["text"] == text
    file = write_export(foreign, tmp_path / "t.parquet")
    assert pandas.read_parquet(file)["attribute_text"].iloc[-1] == text


def test_half_a_character_is_written_as_its_number(foreign: Study, tmp_path: Path) -> None:
    foreign.as_optuna().ask().set_user_attr("half", LONE_HALF)
    assert rows_of(export_bytes(foreign, "csv"))[-1]["attribute_half"] == "\\ud83d"
    assert strict(export_bytes(foreign, "json"))["trials"][-1]["attributes"]["half"] == LONE_HALF
    assert parquet.read_table(write_export(foreign, tmp_path / "t.parquet"))["attribute_half"][-1].as_py() == "\\ud83d"


def test_empty_study_has_a_head_and_no_rows(tmp_path: Path) -> None:
    empty = Storage(f"sqlite:///{tmp_path / 'studies.db'}").create_study("empty", direction="maximize")
    assert export_bytes(empty, "csv").decode() == f"{','.join(FACTS)}\n"
    assert strict(export_bytes(empty, "json"))["trials"] == []
    frame = pandas.read_parquet(write_export(empty, tmp_path / "t.parquet"))
    assert list(frame.columns) == FACTS
    assert len(frame) == 0


def test_file_with_letters_beyond_ascii_has_a_mark_for_spreadsheets(study: Study, tmp_path: Path) -> None:
    marked = write_export(study, tmp_path / "marked.csv")
    assert marked.read_bytes().startswith(b"\xef\xbb\xbfnumber,")
    assert pandas.read_csv(marked)["attribute_error"][2] == "Zu groß: =1+1"
    assert export_bytes(study, "csv").startswith(b"number,")
    plain = Storage(f"sqlite:///{tmp_path / 'studies.db'}").create_study("plain", direction="maximize")
    assert write_export(plain, tmp_path / "plain.csv").read_bytes().startswith(b"number,")


@pytest.mark.parametrize("name, expected", [("a.csv", "csv"), ("a.b.JSON", "json"), ("d.csv/e.Parquet", "parquet")])
def test_suffix_names_the_format(name: str, expected: str) -> None:
    assert format_of(Path(name)) == expected


@pytest.mark.parametrize("name", ["a.xls", "a", ".csv"])
def test_suffix_that_names_no_format_is_refused_with_those_that_do(name: str) -> None:
    with pytest.raises(ExportError, match=r"\.csv, \.json, \.parquet"):
        format_of(Path(name))


def test_file_is_replaced_whole_and_stays_when_writing_fails(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "new" / "trials.csv"
    file.parent.mkdir()
    file.write_text("old")
    write_export(study, file)
    before = file.read_bytes()

    def full(self: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ExportError, match="No space left on device"):
        write_export(study, file)
    assert file.read_bytes() == before
    assert os.listdir(file.parent) == ["trials.csv"]


def test_device_or_folder_in_the_place_of_the_file_is_refused(study: Study, tmp_path: Path) -> None:
    for target in (Path("/dev/null"), tmp_path):
        with pytest.raises(ExportError, match="not an ordinary file"):
            write_export(study, target, "csv")
    assert Path("/dev/null").is_char_device()


def test_missing_package_is_named_with_the_command_and_nothing_is_written(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ExportError, match="'pyarrow', which is not installed; run: pip install"):
        write_export(study, tmp_path / "out" / "trials.parquet")
    assert not (tmp_path / "out").exists()
